package git

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/policies"
)

// G4: a list of refs that does not begin or end as one is no empty repository.
func TestListThatIsNotWhole(t *testing.T) {
	t.Parallel()
	const (
		service = "001e# service=git-upload-pack\n"
		noFeed  = "001d# service=git-upload-pack"
		empty   = "0000" + "0000"
	)
	w := newWorld(t)
	for name, tc := range map[string]struct {
		body   string
		more   int // bytes that are promised beyond the body
		reason string
	}{
		"empty":                   {service + empty, 0, ""},
		"empty, no line feed":     {noFeed + empty, 0, ""},
		"empty and cut":           {service + empty, 1, "timeout"},
		"cut in the first line":   {service[:20], 0, "timeout"},
		"cut in the first length": {service[:2], 80, "timeout"},
		"no first line":           {"0000", 0, "format"},
		"no first line, and cut":  {"0000", 96, "format"},
		"another service":         {"001f# service=git-receive-pack\n" + empty, 0, "format"},
		"another length":          {"0020# service=git-upload-pack\n" + empty, 0, "format"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			rw.Header().Set("Content-Length", fmt.Sprint(len(tc.body)+tc.more))
			rw.Write([]byte(tc.body))
		}))
		defer server.Close()
		e := newIsolated(limits{})
		ctx, rec := recorded(t)
		_, err := e.lsRemote(ctx, remoteAt(t, server.URL, Credentials{}))
		if f := failureOf(t, policies.OpLsRemote, rec, err); f.Reason != tc.reason {
			t.Errorf("%s: ls-remote: %+v, want %q", name, f, tc.reason)
		}
		ctx, rec = recorded(t)
		_, err = e.fetch(ctx, remoteAt(t, server.URL, Credentials{}), w.open(), "")
		if f := failureOf(t, policies.OpFetch, rec, err); f.Reason != tc.reason {
			t.Errorf("%s: fetch: %+v, want %q", name, f, tc.reason)
		}
		ctx, rec = recorded(t)
		_, err = e.clone(ctx, remoteAt(t, server.URL, Credentials{}), filepath.Join(t.TempDir(), "clone"), cloneSpec{})
		if f := failureOf(t, policies.OpClone, rec, err); f.Reason != tc.reason {
			t.Errorf("%s: clone: %+v, want %q", name, f, tc.reason)
		}
	}
}
