package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestChannelFloor(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	// P3: body, else header, else nothing asked (60 s on a 429).
	for _, tc := range []struct {
		name    string
		surface Surface
		body    string
		header  []string
		want    Floor
	}{
		{"discord fraction", SurfaceDiscord, `{"retry_after":0.631}`, nil, Floor{Wait: 631 * time.Millisecond, Source: FloorBody}},
		{"discord zero", SurfaceDiscord, `{"retry_after":0}`, []string{"7"}, Floor{Source: FloorBody}},
		{"discord negative", SurfaceDiscord, `{"retry_after":-1}`, []string{"7"}, Floor{Wait: 7 * time.Second, Source: FloorRetryAfter}},
		{"discord text", SurfaceDiscord, `{"retry_after":"5"}`, nil, Floor{}},
		{"discord null", SurfaceDiscord, `{"retry_after":null}`, nil, Floor{}},
		{"discord unsafe", SurfaceDiscord, `{"retry_after":1e300}`, nil, Floor{}},
		{"discord nested is not its form", SurfaceDiscord, `{"parameters":{"retry_after":5}}`, nil, Floor{}},
		{"telegram", SurfaceTelegram, `{"ok":false,"error_code":429,"parameters":{"retry_after":2400}}`, nil, Floor{Wait: 40 * time.Minute, Source: FloorBody}},
		{"telegram top level is not its form", SurfaceTelegram, `{"retry_after":5}`, nil, Floor{}},
		{"telegram odd neighbours", SurfaceTelegram, `{"error":"x","parameters":{"retry_after":5}}`, nil, Floor{Wait: 5 * time.Second, Source: FloorBody}},
		{"not JSON", SurfaceTelegram, `<html>`, []string{"3"}, Floor{Wait: 3 * time.Second, Source: FloorRetryAfter}},
		{"largest header", SurfaceDiscord, ``, []string{"3", "9", "x"}, Floor{Wait: 9 * time.Second, Source: FloorRetryAfter}},
		{"blanks", SurfaceDiscord, ``, []string{"\t 3 "}, Floor{Wait: 3 * time.Second, Source: FloorRetryAfter}},
		{"date", SurfaceDiscord, ``, []string{"Fri, 01 May 2026 12:00:05 GMT"}, Floor{Wait: 5 * time.Second, Source: FloorRetryAfter}},
		{"past date", SurfaceDiscord, ``, []string{"Fri, 01 May 2026 11:00:05 GMT"}, Floor{Source: FloorRetryAfter}},
		{"decimal header", SurfaceDiscord, ``, []string{"1.5"}, Floor{}},
		{"signed header", SurfaceDiscord, ``, []string{"+1"}, Floor{}},
		{"negative header", SurfaceDiscord, ``, []string{"-1"}, Floor{}},
		{"hexadecimal header", SurfaceDiscord, ``, []string{"0x10"}, Floor{}},
		{"exponent header", SurfaceDiscord, ``, []string{"1e3"}, Floor{}},
		{"unsafe header", SurfaceDiscord, ``, []string{"9007199254741"}, Floor{}},
		{"endless header", SurfaceDiscord, ``, []string{strings.Repeat("1", 400)}, Floor{}},
	} {
		f := Fault{Surface: tc.surface, Status: 429, Body: []byte(tc.body), Header: http.Header{"Retry-After": tc.header}, Now: now}
		if got := ChannelFloor(&f); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
		want := tc.want
		if !want.Asked() {
			want = Floor{Wait: 60 * time.Second, Source: FloorDefault}
		}
		f.Operation = OpEdit
		if got := Judge(&f); got.Floor != want || got.Reason != ReasonRateLimit || !got.RetrySame || got.Effect != EffectNotSent {
			t.Errorf("%s: verdict %+v, want floor %+v", tc.name, got, want)
		}
	}
}

func TestFloorBelongsToItsResponse(t *testing.T) {
	t.Parallel()
	// P3: a transport error of a later attempt has no header and no floor.
	f := Fault{Surface: SurfaceDiscord, Operation: OpEdit, Started: true, Code: "ECONNRESET"}
	if v := Judge(&f); v.Floor.Asked() || !v.RetrySame {
		t.Errorf("%+v", v)
	}
}
