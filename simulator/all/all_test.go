package all_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/all"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Q1: the four simulators start together, each with its own script and ledger.
func TestWorld(t *testing.T) {
	t.Parallel()
	w, err := all.Start(all.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Git.Create("p.git", 1); err != nil {
		t.Fatal(err)
	}
	u := w.URLs()
	for url, want := range map[string]int{
		u.Discord + "/users/@me": 401, u.Telegram + "/bot1:x/getMe": 200, u.OpenAI + "/models": 200,
		u.Git + "/p.git/info/refs?service=git-upload-pack": 200,
	} {
		if got, body := get(t, url); got != want {
			t.Errorf("%s: %d %s, want %d", url, got, body, want)
		}
	}
	for name, s := range w.Servers() {
		if n := len(s.Ledger().Requests("")); n != 1 {
			t.Errorf("%s has %d requests, want 1", name, n)
		}
		if _, body := get(t, s.URL()+simulator.AdminLedger); !strings.Contains(body, `"requests":[{"n":1,`) {
			t.Errorf("%s: ledger %s", name, body)
		}
	}
	w.Reset()
	if n := len(w.Telegram.Ledger().Requests("")); n != 0 {
		t.Errorf("%d requests after the reset", n)
	}
}

// Q1: if a port is taken, nothing is left running (goleak would see it).
func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = all.Start(all.Options{Telegram: telegram.Options{Addr: l.Addr().String()}})
	if err == nil || !strings.Contains(err.Error(), "telegram: simulator: listen on "+l.Addr().String()) {
		t.Errorf("error %v", err)
	}
	if o := all.Ports(7000); o.Discord.Addr != "127.0.0.1:7000" || o.Git.Addr != "127.0.0.1:7003" {
		t.Errorf("ports %+v", o)
	}
}
