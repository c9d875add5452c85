package policies

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	pushOld    = "1111111111111111111111111111111111111111"
	pushNew    = "2222222222222222222222222222222222222222"
	pushOther  = "3333333333333333333333333333333333333333"
	pushLater  = "4444444444444444444444444444444444444444"
	pushAbsent = "0000000000000000000000000000000000000000"
)

var pushEpoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// second is a moment so many seconds after the push failed.
func second(s float64) time.Time { return pushEpoch.Add(time.Duration(s * float64(time.Second))) }

func found(at float64, id string) PushRead { return PushRead{At: second(at), Found: id} }

func contains(at float64, id string) PushRead {
	return PushRead{At: second(at), Found: id, Contains: true}
}

func unread(at float64, v Verdict) PushRead { return PushRead{At: second(at), Failure: &v} }

var (
	pushLost    = Verdict{Reason: ReasonTimeout, Effect: EffectUnknown, Rule: "G4/connection_reset"}
	pushNotSent = Verdict{Reason: ReasonTimeout, Effect: EffectNotSent, Rule: "G4/connection_refused"}
	readReset   = Verdict{Reason: ReasonTimeout, RetrySame: true, Effect: EffectNone, Rule: "G4/connection_reset"}
	readDenied  = Verdict{Reason: ReasonAuth, Permanent: true, Effect: EffectNone, Rule: "G3/auth"}
	readTimeout = Verdict{Reason: ReasonDeadline, Permanent: true, Effect: EffectNone, Rule: "G3/timeout"}
	readLost    = Verdict{Reason: ReasonWorkerLost, Effect: EffectUnknown, Rule: "C2.8/worker_lost"}
	readFloor   = Verdict{Reason: ReasonRateLimit, RetrySame: true, Floor: Floor{Wait: 20 * time.Second, Source: FloorRetryAfter}}
	readForever = Verdict{Reason: ReasonRateLimit, RetrySame: true, Floor: Floor{Infinite: true, Source: FloorRetryAfter}}
)

// G6: what became of a push, from its failure and from what was read since.
func TestLocatePush(t *testing.T) {
	t.Parallel()
	permanent := func(reason Reason, effect Effect) Verdict {
		return Verdict{Reason: reason, Permanent: true, Effect: effect}
	}
	for _, tc := range []struct {
		name   string
		e      PushEvidence
		answer PushAnswer
		after  float64
		rule   string
	}{
		// Before anything was read.
		{"lost", PushEvidence{Failure: pushLost}, PushReadRemote, 0, "G6/first_reading"},
		{"not sent", PushEvidence{Failure: pushNotSent}, PushReadRemote, 0, "G6/first_reading"},
		{"refused", PushEvidence{Failure: permanent(ReasonAuth, EffectNotSent)}, PushRefused, 0, "G6/refused"},
		{"refused, but not before it began", PushEvidence{Failure: permanent(ReasonAuth, EffectUnknown)}, PushReadRemote, 0, "G6/first_reading"},
		{"an effect of none proves nothing", PushEvidence{Failure: permanent(ReasonNoSpace, EffectNone)}, PushReadRemote, 0, "G6/first_reading"},
		{"a conflict is looked at", PushEvidence{Failure: permanent(ReasonConflict, EffectNotSent)}, PushReadRemote, 0, "G6/first_reading"},
		{"worker lost", PushEvidence{Failure: readLost}, PushReadRemote, 0, "G6/first_reading"},
		{"no time at all", PushEvidence{Failure: pushLost, Now: second(60)}, PushNeedsReview, 0, "G6/not_read_in_time"},
		{"no time, proved", PushEvidence{Failure: pushNotSent, Now: second(60)}, PushNotLanded, 0, "G6/not_sent"},

		// One reading that has ours is enough, also among others.
		{"ours", PushEvidence{Reads: []PushRead{found(0, pushNew)}}, PushLanded, 0, "G6/found"},
		{"ours beneath", PushEvidence{Reads: []PushRead{contains(0, pushOther)}}, PushLanded, 0, "G6/contained"},
		{"ours after a lagging replica", PushEvidence{Reads: []PushRead{found(0, pushOld), found(2, pushNew)}}, PushLanded, 0, "G6/found"},
		{"ours before a lagging replica", PushEvidence{Reads: []PushRead{found(0, pushNew), found(2, pushOld), found(4, pushOld)}}, PushLanded, 0, "G6/found"},
		{"ours beneath, though proved not sent", PushEvidence{Failure: pushNotSent, Reads: []PushRead{contains(0, pushOther)}}, PushLanded, 0, "G6/contained"},
		{"what was there contains ours", PushEvidence{Reads: []PushRead{contains(0, pushOld), contains(2, pushOld)}}, PushNotLanded, 0, "G6/unchanged"},
		{"upon what was there", PushEvidence{Rewinds: true, Reads: []PushRead{contains(0, pushOther), contains(2, pushOther)}}, PushConflict, 0, "G6/moved_elsewhere"},
		{"rewound", PushEvidence{Rewinds: true, Reads: []PushRead{contains(0, pushNew)}}, PushLanded, 0, "G6/found"},

		// Everything else takes two readings that agree.
		{"unchanged once", PushEvidence{Reads: []PushRead{found(0, pushOld)}}, PushReadRemote, 2, "G6/read_again"},
		{"unchanged twice", PushEvidence{Reads: []PushRead{found(0, pushOld), found(2, pushOld)}}, PushNotLanded, 0, "G6/unchanged"},
		{"unchanged twice, too soon", PushEvidence{Reads: []PushRead{found(0, pushOld), found(1, pushOld)}}, PushReadRemote, 2, "G6/read_again"},
		{"unchanged thrice, two of them far enough", PushEvidence{Reads: []PushRead{found(0, pushOld), found(1, pushOld), found(2, pushOld)}}, PushNotLanded, 0, "G6/unchanged"},
		{"unchanged around a failed reading", PushEvidence{Reads: []PushRead{found(0, pushOld), unread(1, readReset), found(2, pushOld)}}, PushNotLanded, 0, "G6/unchanged"},
		{"the wait has begun", PushEvidence{Reads: []PushRead{found(0, pushOld)}, Now: second(1.5)}, PushReadRemote, 0.5, "G6/read_again"},
		{"somebody else once", PushEvidence{Reads: []PushRead{found(0, pushOther)}}, PushReadRemote, 2, "G6/read_again"},
		{"somebody else twice", PushEvidence{Reads: []PushRead{found(0, pushOther), found(2, pushOther)}}, PushConflict, 0, "G6/moved_elsewhere"},
		{"gone", PushEvidence{Reads: []PushRead{found(0, ""), found(2, "")}}, PushConflict, 0, "G6/moved_elsewhere"},
		{"it moves on", PushEvidence{Reads: []PushRead{found(0, pushOther), found(2, pushLater)}}, PushReadRemote, 2, "G6/read_again"},
		{"unchanged, then moved", PushEvidence{Reads: []PushRead{found(0, pushOld), found(2, pushOther)}}, PushReadRemote, 2, "G6/read_again"},
		{"moved, then unchanged", PushEvidence{Reads: []PushRead{found(0, pushOther), found(2, pushOld), found(4, pushOld)}}, PushNotLanded, 0, "G6/unchanged"},
		{"to and fro", PushEvidence{Reads: []PushRead{found(0, pushOld), found(2, pushOther), found(4, pushOld)}}, PushReadRemote, 2, "G6/read_again"},
		{"a new ref, absent", PushEvidence{Old: pushAbsent, Reads: []PushRead{found(0, ""), found(2, "")}}, PushNotLanded, 0, "G6/unchanged"},
		{"unchanged, but too late for another", PushEvidence{Reads: []PushRead{found(58.5, pushOld)}}, PushNeedsReview, 0, "G6/not_read_in_time"},
		{"proved, and too late for another", PushEvidence{Failure: pushNotSent, Reads: []PushRead{found(58.5, pushOther)}}, PushNotLanded, 0, "G6/not_sent"},

		// A remote that cannot be read is polled, less and less often.
		{"unreadable", PushEvidence{Reads: []PushRead{unread(0, readReset)}}, PushReadRemote, 1, "G6/read_again"},
		{"unreadable twice", PushEvidence{Reads: []PushRead{unread(0, readReset), unread(1, readReset)}}, PushReadRemote, 2, "G6/read_again"},
		{"unreadable five times", PushEvidence{Reads: []PushRead{unread(0, readReset), unread(1, readReset), unread(3, readReset), unread(7, readReset), unread(15, readReset)}}, PushReadRemote, 15, "G6/read_again"},
		{"unreadable again", PushEvidence{Reads: []PushRead{unread(0, readReset), unread(1, readReset), found(3, pushOld), unread(5, readReset)}}, PushReadRemote, 1, "G6/read_again"},
		{"the last reading before the end", PushEvidence{Reads: []PushRead{unread(0, readReset), unread(1, readReset), unread(3, readReset), unread(7, readReset), unread(50, readReset)}}, PushReadRemote, 8, "G6/read_again"},
		{"the end", PushEvidence{Reads: []PushRead{unread(59, readReset)}}, PushNeedsReview, 0, "G6/not_read_in_time"},
		{"the end, proved", PushEvidence{Failure: pushNotSent, Reads: []PushRead{unread(59, readReset)}}, PushNotLanded, 0, "G6/not_sent"},
		{"denied", PushEvidence{Reads: []PushRead{unread(0, readDenied)}}, PushNeedsReview, 0, "G6/unreadable"},
		{"denied, proved", PushEvidence{Failure: pushNotSent, Reads: []PushRead{unread(0, readDenied)}}, PushNotLanded, 0, "G6/not_sent"},
		{"denied after a reading", PushEvidence{Reads: []PushRead{found(0, pushOld), unread(2, readDenied)}}, PushNeedsReview, 0, "G6/unreadable"},
		{"out of time is not denied", PushEvidence{Reads: []PushRead{unread(5, readTimeout)}}, PushReadRemote, 1, "G6/read_again"},
		{"a floor", PushEvidence{Reads: []PushRead{unread(0, readFloor)}}, PushReadRemote, 20, "G6/read_again"},
		{"a floor, cancelled", PushEvidence{Cancelled: true, Reads: []PushRead{unread(0, readFloor)}}, PushReadRemote, 20, "G6/read_again"},
		{"a floor beyond the end", PushEvidence{Reads: []PushRead{unread(45, readFloor)}}, PushNeedsReview, 0, "G6/not_read_in_time"},
		{"a floor for ever", PushEvidence{Reads: []PushRead{unread(0, readForever)}}, PushNeedsReview, 0, "G6/unreadable"},
		{"cancelled while it waits long", PushEvidence{Cancelled: true, Now: second(8), Reads: []PushRead{unread(0, readReset), unread(1, readReset), unread(3, readReset), unread(7, readReset)}}, PushReadRemote, 1, "G6/read_again"},

		// G3: a reading whose worker was lost is made anew at once, uncharged.
		{"reader lost", PushEvidence{Reads: []PushRead{unread(0, readLost)}}, PushReadRemote, 0, "G6/read_again"},
		{"reader lost twice", PushEvidence{Reads: []PushRead{unread(0, readLost), unread(15, readLost)}}, PushReadRemote, 1, "G6/read_again"},
		{"reader lost, then unreadable", PushEvidence{Reads: []PushRead{unread(0, readLost), unread(1, readReset)}}, PushReadRemote, 1, "G6/read_again"},
	} {
		e := tc.e
		if e.Old == "" {
			e.Old = pushOld
		}
		if e.Failure.Reason == "" {
			e.Failure = pushLost
		}
		e.New, e.Until = pushNew, second(60)
		if n := len(e.Reads); e.Now.IsZero() && n > 0 {
			e.Now = e.Reads[n-1].At
		} else if e.Now.IsZero() {
			e.Now = pushEpoch
		}
		got := LocatePush(e)
		want := PushVerdict{tc.answer, time.Duration(tc.after * float64(time.Second)), tc.rule}
		if got != want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, want)
		}
	}
}

// G6: a push leaves time for readings, one reading leaves time for another, and
// the readings end with the operation, or shortly after what cut it short.
func TestPushShares(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		120 * time.Second: 90 * time.Second, 10 * time.Minute: 570 * time.Second, 20 * time.Second: 15 * time.Second, time.Second: 750 * time.Millisecond, 0: 0,
	} {
		if got := PushShare(left); got != want {
			t.Errorf("of %v a push may take %v, want %v", left, got, want)
		}
	}
	for left, want := range map[time.Duration]time.Duration{
		time.Minute: 30 * time.Second, 8 * time.Second: 5 * time.Second, 3 * time.Second: 3 * time.Second, 0: 0,
	} {
		if got := PushReadShare(left); got != want {
			t.Errorf("of %v a reading may take %v, want %v", left, got, want)
		}
	}
	for _, tc := range []struct {
		name                              string
		deadline, failed, cancelled, want float64
	}{
		{"in time", 120, 3, -1, 120},
		{"too late for two readings", 3, 2.5, -1, 7.5},
		{"long past", 3, 18, -1, 23},
		{"cancelled", 120, 3, 4, 14},
		{"cancelled near the end", 12, 3, 4, 12},
		{"cancelled long past", 3, 18, 2, 12},
	} {
		cancelled := time.Time{}
		if tc.cancelled >= 0 {
			cancelled = second(tc.cancelled)
		}
		if got := PushReadUntil(second(tc.deadline), second(tc.failed), cancelled); !got.Equal(second(tc.want)) {
			t.Errorf("%s: until %v, want %v", tc.name, got.Sub(pushEpoch), tc.want)
		}
	}
}

var drawPushVerdict = rapid.Custom(func(t *rapid.T) Verdict {
	v := Verdict{
		Reason: rapid.SampledFrom([]Reason{ReasonTimeout, ReasonServerError, ReasonAuth, ReasonNotFound, ReasonConflict, ReasonDeadline,
			ReasonCancelled, ReasonWorkerLost, ReasonRateLimit, ReasonUnclassified, ReasonTLS, ReasonLock}).Draw(t, "reason"),
		Effect:    rapid.SampledFrom([]Effect{EffectNone, EffectNotSent, EffectUnknown, EffectSent, ""}).Draw(t, "effect"),
		Permanent: rapid.Bool().Draw(t, "permanent"),
	}
	if rapid.IntRange(0, 5).Draw(t, "floored") == 0 {
		v.Floor = Floor{Source: FloorRetryAfter, Wait: time.Duration(rapid.IntRange(0, 100_000).Draw(t, "floor")) * time.Millisecond}
	}
	return v
})

// pushWorld draws how a push failed and plays a remote against the decision:
// whatever it is read as, until there is an answer.
func pushWorld(t *rapid.T) (e PushEvidence, answer PushVerdict) {
	ids := []string{pushOld, pushNew, pushOther, pushLater, "", pushAbsent}
	e = PushEvidence{
		Old: rapid.SampledFrom([]string{pushOld, "", pushAbsent}).Draw(t, "old"), New: pushNew,
		Rewinds: rapid.Bool().Draw(t, "rewinds"), Failure: drawPushVerdict.Draw(t, "failure"), Now: pushEpoch,
	}
	deadline := second(rapid.Float64Range(-100, 600).Draw(t, "deadline"))
	e.Until = PushReadUntil(deadline, pushEpoch, time.Time{})
	for range 2000 {
		answer = LocatePush(e)
		if answer.Answer != PushReadRemote {
			return e, answer
		}
		if answer.After < 0 || !e.Now.Add(answer.After).Before(e.Until) {
			t.Fatalf("a reading after %v at %v, with the end at %v", answer.After, e.Now, e.Until)
		}
		if !e.Cancelled && rapid.IntRange(0, 20).Draw(t, "cancel") == 0 {
			e.Now = e.Now.Add(answer.After / 2)
			e.Cancelled, e.Until = true, PushReadUntil(deadline, pushEpoch, e.Now)
			continue
		}
		took := time.Duration(rapid.IntRange(0, 8000).Draw(t, "took")) * time.Millisecond
		e.Now = e.Now.Add(answer.After + took)
		r := PushRead{At: e.Now}
		if rapid.Bool().Draw(t, "unreadable") {
			v := drawPushVerdict.Draw(t, "read failure")
			r.Failure = &v
		} else {
			r.Found, r.Contains = rapid.SampledFrom(ids).Draw(t, "found"), rapid.Bool().Draw(t, "contains")
		}
		e.Reads = append(e.Reads, r)
	}
	t.Fatal("it never ends")
	return e, answer
}

// wantHonestPush checks an answer against everything that was read.
func wantHonestPush(t interface{ Fatalf(string, ...any) }, e PushEvidence, got PushVerdict) {
	ours, agreeing := false, map[string][]time.Time{}
	for _, r := range e.Reads {
		if r.Failure != nil {
			continue
		}
		ours = ours || r.Found == e.New || (r.Contains && objectID(r.Found) != "" && objectID(r.Found) != objectID(e.Old) && !e.Rewinds)
		agreeing[objectID(r.Found)] = append(agreeing[objectID(r.Found)], r.At)
	}
	apart := func(at []time.Time) bool {
		return len(at) > 1 && at[len(at)-1].Sub(at[0]) >= PushReadSpacing
	}
	proved := e.Failure.Effect == EffectNotSent
	if (got.Answer == PushLanded) != ours {
		t.Fatalf("%+v, with ours read: %v: %+v", got, ours, e)
	}
	switch got.Answer {
	case PushNotLanded:
		if !proved && !apart(agreeing[objectID(e.Old)]) {
			t.Fatalf("not landed without two readings that agree or a proof: %+v", e)
		}
	case PushConflict:
		other := false
		for id, at := range agreeing {
			other = other || (id != objectID(e.Old) && apart(at))
		}
		if !other {
			t.Fatalf("a conflict without two readings that agree: %+v", e)
		}
	case PushNeedsReview:
		if proved {
			t.Fatalf("a review of what is proved not sent: %+v", e)
		}
	case PushRefused:
		if !proved || len(e.Reads) > 0 {
			t.Fatalf("refused without a proof: %+v", e)
		}
	}
	if !strings.HasPrefix(got.Rule, "G6/") {
		t.Fatalf("rule %q", got.Rule)
	}
}

// G6: whatever the remote does, the search ends; landed is said if and only if
// ours was read, and nothing else is said without proof.
func TestLocatePushNeverGuesses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e, answer := pushWorld(t)
		wantHonestPush(t, e, answer)
	})
}

// G6: of all answers only a reading asks for anything, so that no evidence
// whatever leads to a second push.
func FuzzLocatePush(f *testing.F) {
	for _, script := range []string{
		"", "o", "oo", "on", "no", "c", "cc", "xx", "xy", "ux", "dd", "lo", "uuuuu", "foo", "tt", "a-a", "-o-o", "o!o",
	} {
		f.Add(script, "timeout", "unknown", false, uint16(60))
	}
	f.Add("xx", "conflict", "not_sent", true, uint16(10))
	f.Add("", "auth", "not_sent", false, uint16(120))
	letters := map[rune]PushRead{
		'o': {Found: pushOld}, 'n': {Found: pushNew}, 'c': {Found: pushOther, Contains: true}, 'x': {Found: pushOther}, 'y': {Found: pushLater},
		'a': {}, 'u': {Failure: &readReset}, 'd': {Failure: &readDenied}, 'l': {Failure: &readLost}, 'f': {Failure: &readFloor}, 't': {Failure: &readTimeout},
	}
	f.Fuzz(func(t *testing.T, script, reason, effect string, permanent bool, seconds uint16) {
		e := PushEvidence{
			Old: pushOld, New: pushNew, Now: pushEpoch, Until: second(float64(seconds)),
			Failure: Verdict{Reason: Reason(reason), Effect: Effect(effect), Permanent: permanent},
		}
		for _, letter := range script {
			r, known := letters[letter]
			switch {
			case letter == '!':
				e.Cancelled = true
				continue
			case !known:
				e.Now = e.Now.Add(time.Second)
				continue
			}
			e.Now = e.Now.Add(time.Second)
			r.At = e.Now
			e.Reads = append(e.Reads, r)
		}
		got := LocatePush(e)
		if got.Answer == PushReadRemote {
			if got.After < 0 || !e.Now.Add(got.After).Before(e.Until) {
				t.Fatalf("%+v for %+v", got, e)
			}
			return
		}
		wantHonestPush(t, e, got)
	})
}
