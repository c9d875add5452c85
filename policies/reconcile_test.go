package policies

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNonce(t *testing.T) {
	t.Parallel()
	// C2.1: at most 25 characters, the same for the same tag.
	if got, want := Nonce("send/a/1"), Nonce("send/a/1"); got != want || len(got) != 24 {
		t.Errorf("%q, %q", got, want)
	}
	if Nonce("send/a/1") == Nonce("send/a/2") {
		t.Error("two parts share a nonce")
	}
	// SHA-256 of nothing begins e3b0c442 98fc1c14 9afbf4c8 996fb9.
	if got, want := Nonce(""), "4oymiquy7qobjgx36tejs35z"; got != want {
		t.Errorf("Nonce of nothing = %q, want %q", got, want)
	}
}

func TestSnowflake(t *testing.T) {
	t.Parallel()
	// C4: the example of Discord's reference, 175928847299117063, is of this millisecond.
	at := time.UnixMilli(1462015105796)
	if got := Snowflake(at); got != "175928847298985984" {
		t.Errorf("Snowflake = %s", got)
	}
	if got := Snowflake(time.Time{}); got != "0" {
		t.Errorf("before the epoch: %s", got)
	}
	if got := Snowflake(time.Unix(1<<40, 0)); len(got) != 19 {
		t.Errorf("far ahead: %s", got)
	}
}

func TestReconcileAnchor(t *testing.T) {
	t.Parallel()
	// C4: the part before, else the lane, else the start minus 5 min.
	at := time.UnixMilli(1462015105796)
	for _, tc := range []struct {
		part, lane string
		want       Anchor
	}{
		{"7", "5", Anchor{AnchorPart, "7"}},
		{"", "5", Anchor{AnchorLane, "5"}},
		{"", "", Anchor{AnchorStart, Snowflake(at.Add(-5 * time.Minute))}},
	} {
		if got := ReconcileAnchor(tc.part, tc.lane, at); got != tc.want {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	ours := func(id string) SeenMessage { return SeenMessage{ID: id, AuthorID: "me", Content: "hello"} }
	other := SeenMessage{ID: "101", AuthorID: "you"}
	base := Reconciliation{Anchor: Anchor{AnchorPart, "100"}, Self: "me", Content: " hello\r\n"}
	with := func(change func(*Reconciliation)) Reconciliation {
		r := base
		change(&r)
		return r
	}
	looks := func(l ...Look) Reconciliation { return with(func(r *Reconciliation) { r.Looks = l }) }
	// C4: found → receipt; absence is proof only in two looks that see something.
	for _, tc := range []struct {
		name    string
		r       Reconciliation
		answer  ReconcileAnswer
		receipt string
		after   time.Duration
	}{
		{"no look yet", base, ReconcileLookAgain, "", 0},
		{"found at once", looks(Look{After: []SeenMessage{other, ours("102")}}), ReconcileFound, "102", 0},
		{"found in the second look", looks(Look{After: []SeenMessage{other}}, Look{After: []SeenMessage{ours("103")}}), ReconcileFound, "103", 0},
		{"the oldest", looks(Look{After: []SeenMessage{ours("1000"), ours("999")}}), ReconcileFound, "999", 0},
		{"one absence", looks(Look{After: []SeenMessage{other}}), ReconcileLookAgain, "", 2 * time.Second},
		{"two absences", looks(Look{After: []SeenMessage{other}}, Look{After: []SeenMessage{other}}), ReconcileAbsent, "", 0},
		{"shown by the read before", looks(Look{Before: []SeenMessage{ours("99")}}, Look{Before: []SeenMessage{ours("99")}}), ReconcileAbsent, "", 0},
		{"nothing seen", looks(Look{}, Look{}), ReconcileUnresolved, "", 0},
		{"nothing seen once", looks(Look{After: []SeenMessage{other}}, Look{}), ReconcileUnresolved, "", 0},
		{"a look failed", looks(Look{Failed: true}, Look{After: []SeenMessage{other}}), ReconcileUnresolved, "", 0},
		{"a third look may prove", looks(Look{Failed: true}, Look{After: []SeenMessage{other}}, Look{After: []SeenMessage{other}}), ReconcileAbsent, "", 0},
		{"more to read", looks(Look{After: []SeenMessage{other}}, Look{After: []SeenMessage{other}, More: true}), ReconcileUnresolved, "", 0},
		{"before the anchor is another's", looks(Look{After: []SeenMessage{ours("99")}}), ReconcileLookAgain, "", 2 * time.Second},
		{"another author", looks(Look{After: []SeenMessage{{ID: "102", AuthorID: "you", Content: "hello"}}}), ReconcileLookAgain, "", 2 * time.Second},
		{"another content", looks(Look{After: []SeenMessage{{ID: "102", AuthorID: "me", Content: "hello!"}}}), ReconcileLookAgain, "", 2 * time.Second},
		{"an attachment too many", looks(Look{After: []SeenMessage{{ID: "102", AuthorID: "me", Content: "hello", Attachments: 1}}}), ReconcileLookAgain, "", 2 * time.Second},
		{"receipted already", with(func(r *Reconciliation) {
			r.Receipted, r.Looks = []string{"102"}, []Look{{After: []SeenMessage{ours("102"), ours("103")}}}
		}), ReconcileFound, "103", 0},
		{"since the start first", with(func(r *Reconciliation) {
			r.StartID, r.Looks = "200", []Look{{After: []SeenMessage{ours("150"), ours("201")}}}
		}), ReconcileFound, "201", 0},
		{"only an older one with the same words", with(func(r *Reconciliation) {
			r.StartID, r.Looks = "200", []Look{{After: []SeenMessage{ours("150")}}, {After: []SeenMessage{ours("150")}}}
		}), ReconcileUnresolved, "", 0},
		{"we are not known", with(func(r *Reconciliation) {
			r.Self, r.Looks = "", []Look{{After: []SeenMessage{other}}, {After: []SeenMessage{other}}}
		}), ReconcileUnresolved, "", 0},
		{"nothing to compare", with(func(r *Reconciliation) { r.Content = " " }), ReconcileUnresolved, "", 0},
	} {
		got := Reconcile(tc.r)
		if got.Answer != tc.answer || got.Receipt != tc.receipt || got.After != tc.after || !strings.HasPrefix(got.Rule, "C4/") {
			t.Errorf("%s: %+v, want %s %s %v", tc.name, got, tc.answer, tc.receipt, tc.after)
		}
	}
}

func TestReconcileNeverGuesses(t *testing.T) {
	t.Parallel()
	// C4: a receipt is always an unreceipted message of ours after the anchor;
	// a replay is allowed only after two complete looks that saw something.
	message := rapid.Custom(func(t *rapid.T) SeenMessage {
		return SeenMessage{
			ID:       rapid.SampledFrom([]string{"99", "100", "101", "102", "1000"}).Draw(t, "id"),
			AuthorID: rapid.SampledFrom([]string{"me", "you", ""}).Draw(t, "author"), Content: rapid.SampledFrom([]string{"hello", "bye", ""}).Draw(t, "content"),
		}
	})
	look := rapid.Custom(func(t *rapid.T) Look {
		return Look{
			Failed: rapid.Bool().Draw(t, "failed"), More: rapid.Bool().Draw(t, "more"),
			After: rapid.SliceOfN(message, 0, 4).Draw(t, "after"), Before: rapid.SliceOfN(message, 0, 2).Draw(t, "before"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		r := Reconciliation{
			Anchor: Anchor{AnchorLane, "100"}, Self: "me", Content: "hello", Receipted: rapid.SliceOfN(rapid.SampledFrom([]string{"101", "102"}), 0, 2).Draw(t, "receipted"),
			Looks: rapid.SliceOfN(look, 0, 4).Draw(t, "looks"),
		}
		switch got := Reconcile(r); got.Answer {
		case ReconcileFound:
			if got.Receipt == "99" || got.Receipt == "100" || strings.Contains(strings.Join(r.Receipted, " "), got.Receipt) {
				t.Fatalf("found %q", got.Receipt)
			}
		case ReconcileAbsent:
			if len(r.Looks) < 2 {
				t.Fatal("absent after one look")
			}
			for _, l := range r.Looks[len(r.Looks)-2:] {
				if l.Failed || l.More || len(l.After)+len(l.Before) == 0 {
					t.Fatalf("absent by %+v", l)
				}
			}
		}
	})
}
