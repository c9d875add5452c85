package contract_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

const secret = "s3cr3t"

// wantRefused checks that input is refused for the given cause, and that the
// message repeats nothing of the caller's.
func wantRefused(t *testing.T, want string, err *contract.Error) {
	t.Helper()
	if err == nil || err.Reason != "format" || !strings.Contains(err.Message, want) {
		t.Errorf("%s: %v", want, err)
		return
	}
	if strings.Contains(err.Message, secret) {
		t.Errorf("%s: the message repeats what was given: %s", want, err.Message)
	}
	if !strings.HasPrefix(err.Rule, "G") {
		t.Errorf("%s: rule %q", want, err.Rule)
	}
}

// G10: a clone that cannot be made is refused before anything is sent.
func TestGitCloneInputValidate(t *testing.T) {
	t.Parallel()
	for _, good := range []contract.GitCloneInput{
		{URL: "u", Dir: "/c"},
		{URL: "u", Dir: "/c d/é", Host: "build-1.example", Ref: "v1.2.3", Depth: 1, Sparse: []string{"docs", "a/b/", "..a"}, Auth: "github", Timeout: "90s"},
		{URL: "u", Dir: "/c", Ref: "feature/x", Admission: &contract.GitAdmission{Activity: "may"}},
	} {
		if err := good.Validate(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
	}
	for want, changes := range map[string][]func(*contract.GitCloneInput){
		"no checkout is named": {func(in *contract.GitCloneInput) { in.Dir = "" }},
		"not an absolute path": {
			func(in *contract.GitCloneInput) { in.Dir = "checkouts/" + secret },
			func(in *contract.GitCloneInput) { in.Dir = "https://user:" + secret + "@h/a" },
		},
		"directory holds control characters": {
			func(in *contract.GitCloneInput) { in.Dir = "/c\x00" },
			func(in *contract.GitCloneInput) { in.Dir = "/c\n" + secret },
			func(in *contract.GitCloneInput) { in.Dir = "/c\xff" },
		},
		"host's name": {
			func(in *contract.GitCloneInput) { in.Host = "a b" },
			func(in *contract.GitCloneInput) { in.Host = "-a" },
			func(in *contract.GitCloneInput) { in.Host = "a/" + secret },
			func(in *contract.GitCloneInput) { in.Host = strings.Repeat("a", 254) },
		},
		"begins with a dash": {func(in *contract.GitCloneInput) { in.Ref = "--upload-pack=" + secret }},
		"the ref holds blanks or control": {
			func(in *contract.GitCloneInput) { in.Ref = "a\x1b" },
			func(in *contract.GitCloneInput) { in.Ref = "a b" },
		},
		"the ref is longer": {func(in *contract.GitCloneInput) { in.Ref = strings.Repeat("a", 1001) }},
		"one branch or tag": {
			func(in *contract.GitCloneInput) { in.Ref = "refs/heads/*" },
			func(in *contract.GitCloneInput) { in.Ref = secret + ":b" },
			func(in *contract.GitCloneInput) { in.Ref = "a..b" },
		},
		"cannot be negative": {func(in *contract.GitCloneInput) { in.Depth = -1 }},
		"the depth is above": {func(in *contract.GitCloneInput) { in.Depth = 1 << 31 }},
		"empty or the root": {
			func(in *contract.GitCloneInput) { in.Sparse = []string{"docs", ""} },
			func(in *contract.GitCloneInput) { in.Sparse = []string{"/"} },
		},
		"relative to the top": {
			func(in *contract.GitCloneInput) { in.Sparse = []string{"/" + secret} },
			func(in *contract.GitCloneInput) { in.Sparse = []string{"--stdin"} },
		},
		"leads out": {
			func(in *contract.GitCloneInput) { in.Sparse = []string{"a/../../" + secret} },
			func(in *contract.GitCloneInput) { in.Sparse = []string{".."} },
		},
		"sparse path (--sparse) holds control": {func(in *contract.GitCloneInput) { in.Sparse = []string{"a\nb"} }},
		"not the name of one": {
			func(in *contract.GitCloneInput) { in.Auth = "user:" + secret },
			func(in *contract.GitCloneInput) { in.Auth = secret + "\n" },
		},
		"positive duration": {
			func(in *contract.GitCloneInput) { in.Timeout = "5" },
			func(in *contract.GitCloneInput) { in.Timeout = "-5s" },
			func(in *contract.GitCloneInput) { in.Timeout = "0s" },
		},
		"names no activity": {func(in *contract.GitCloneInput) { in.Admission = &contract.GitAdmission{TaskQueue: "q"} }},
	} {
		for _, change := range changes {
			in := contract.GitCloneInput{URL: "u", Dir: "/c"}
			change(&in)
			wantRefused(t, want, in.Validate())
		}
	}
}

// G6: a push names one ref, deletes none, and forces by a lease alone.
func TestGitPushInputValidate(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("0a", 20)
	for _, in := range []contract.GitPushInput{
		{Dir: "/c"}, {Dir: "/c", Ref: "main"}, {Dir: "/c", Ref: "HEAD:refs/heads/release/1"}, {Dir: "/c", Expect: id},
		{Dir: "/c", Expect: strings.Repeat("0", 40)},
	} {
		if err := in.Validate(); err != nil {
			t.Errorf("%+v: %v", in, err)
		}
	}
	for want, all := range map[string][]contract.GitPushInput{
		"no checkout is named":       {{}},
		"40 lower-case hexadecimal":  {{Dir: "/c", Expect: id[1:]}, {Dir: "/c", Expect: strings.ToUpper(id)}, {Dir: "/c", Expect: secret}, {Dir: "/c", Expect: id + "\n"}},
		"not forced by a plus sign":  {{Dir: "/c", Ref: "+main"}},
		"never deleted":              {{Dir: "/c", Ref: ":refs/heads/main"}},
		"nothing after its colon":    {{Dir: "/c", Ref: "main:"}},
		"one branch or tag":          {{Dir: "/c", Ref: "refs/heads/*:refs/heads/*"}, {Dir: "/c", Ref: "a:b:c"}},
		"begins with a dash":         {{Dir: "/c", Ref: "--all"}, {Dir: "/c", Ref: "main:--x"}},
		"holds blanks or control":    {{Dir: "/c", Ref: "main\x07"}},
		"the timeout":                {{Dir: "/c", Timeout: "soon"}},
		"the host's name is not of ": {{Dir: "/c", Host: "h\x00"}},
	} {
		for _, in := range all {
			wantRefused(t, want, in.Validate())
		}
	}
}

// G3: the same of the operations that read; a fetch takes refspecs and a
// listing takes patterns.
func TestGitReadInputsValidate(t *testing.T) {
	t.Parallel()
	for _, err := range []*contract.Error{
		contract.GitLsRemoteInput{URL: "u", Ref: "refs/tags/v*"}.Validate(),
		contract.GitFetchInput{Dir: "/c", Ref: "+refs/heads/*:refs/remotes/origin/*"}.Validate(),
		contract.GitSyncInput{Dir: "/c", Host: "a", Ref: "main", Timeout: "1m30s"}.Validate(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for want, err := range map[string]*contract.Error{
		"begins with a dash":        contract.GitLsRemoteInput{Ref: "-x"}.Validate(),
		"positive duration":         contract.GitLsRemoteInput{Timeout: "2"}.Validate(),
		"not the name of one":       contract.GitLsRemoteInput{Auth: secret + "@h"}.Validate(),
		"no checkout is named":      contract.GitFetchInput{}.Validate(),
		"the ref holds blanks":      contract.GitFetchInput{Dir: "/c", Ref: "a b"}.Validate(),
		"names no activity":         contract.GitFetchInput{Dir: "/c", Admission: &contract.GitAdmission{Activity: " "}}.Validate(),
		"not an absolute path":      contract.GitSyncInput{Dir: "c"}.Validate(),
		"name one branch or tag":    contract.GitSyncInput{Dir: "/c", Ref: "a:b"}.Validate(),
		"the host's name is not of": contract.GitSyncInput{Dir: "/c", Host: "ä"}.Validate(),
	} {
		wantRefused(t, want, err)
	}
}
