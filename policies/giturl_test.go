package policies_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/policies"
)

// G9: an address never carries a credential, and a refusal never repeats it.
// G12: local remotes work.
func TestParseGitURL(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		raw  string
		want policies.GitURL
	}{
		{"https://git.example/a/b.git", policies.GitURL{Transport: policies.GitHTTP, Host: "git.example"}},
		{"http://127.0.0.1:8080/a", policies.GitURL{Transport: policies.GitHTTP, Host: "127.0.0.1"}},
		{"http://LocalHost/a", policies.GitURL{Transport: policies.GitHTTP, Host: "LocalHost"}},
		{"http://[::1]:8080/a", policies.GitURL{Transport: policies.GitHTTP, Host: "::1"}},
		{"http://git.example/a", policies.GitURL{Transport: policies.GitHTTP, Host: "git.example", Plain: true}},
		{"HTTP://git.example/a", policies.GitURL{Transport: policies.GitHTTP, Host: "git.example", Plain: true}},
		{"http://127.example/a", policies.GitURL{Transport: policies.GitHTTP, Host: "127.example", Plain: true}},
		{"http://10.0.0.1/a", policies.GitURL{Transport: policies.GitHTTP, Host: "10.0.0.1", Plain: true}},
		{"ssh://git@git.example:2222/a", policies.GitURL{Transport: policies.GitSSH, User: "git", Host: "git.example"}},
		{"git@git.example:a/b.git", policies.GitURL{Transport: policies.GitSSH, User: "git", Host: "git.example"}},
		{"git.example:a/b.git", policies.GitURL{Transport: policies.GitSSH, Host: "git.example"}},
		{"file:///srv/a.git", policies.GitURL{Transport: policies.GitFile}},
		{"/srv/a.git", policies.GitURL{Transport: policies.GitFile}},
		{"./with:colon", policies.GitURL{Transport: policies.GitFile}},
		{"../a.git", policies.GitURL{Transport: policies.GitFile}},
	} {
		got, err := policies.ParseGitURL(tc.raw)
		if err != nil {
			t.Errorf("ParseGitURL(%q): %v", tc.raw, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("ParseGitURL(%q) (-want +got):\n%s", tc.raw, diff)
		}
	}

	for _, tc := range []struct {
		raw        string
		credential bool
	}{
		{"https://user:s3cr3t@git.example/a", true},
		{"https://s3cr3t@git.example/a", true},
		{"https://git.example/a?access_token=s3cr3t", true},
		{"https://git.example/a#s3cr3t", true},
		{"ssh://git:s3cr3t@git.example/a", true},
		{"git:s3cr3t@git.example:a", true},
		{"file://s3cr3t@/srv/a", true},
		{"", false},
		{"  ", false},
		{"--upload-pack=s3cr3t", false},
		{"https://git.example/a\ns3cr3t", false},
		{"ext::sh -c s3cr3t", false},
		{"git://git.example/s3cr3t", false},
		{"ftp://git.example/s3cr3t", false},
		{"file://other.example/s3cr3t", false},
		{"https:///s3cr3t", false},
		{"ssh://-oProxyCommand=s3cr3t/a", false},
		{"git@-oProxyCommand=s3cr3t:a", false},
		{"https://git.example:s3cr3t/a", false},
	} {
		_, err := policies.ParseGitURL(tc.raw)
		var refused *policies.GitURLError
		if !errors.As(err, &refused) {
			t.Errorf("ParseGitURL(%q) = %v, want a *GitURLError", tc.raw, err)
			continue
		}
		if refused.Credential != tc.credential {
			t.Errorf("ParseGitURL(%q): credential %v, want %v", tc.raw, refused.Credential, tc.credential)
		}
		if tc.credential && !strings.Contains(refused.Error(), "--auth") {
			t.Errorf("ParseGitURL(%q) does not say to use --auth: %q", tc.raw, refused)
		}
		if strings.Contains(refused.Error(), "s3cr3t") {
			t.Errorf("ParseGitURL(%q) repeats the address: %q", tc.raw, refused)
		}
	}
}
