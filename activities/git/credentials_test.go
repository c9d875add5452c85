package git

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/policies"
)

// G9: a credential goes to the hosts of its profile only, and over http without TLS
// to nobody but this machine, unless its profile says so.
func TestCredentialsStayWithTheirHosts(t *testing.T) {
	t.Parallel()
	token := Credentials{Kind: CredentialToken}
	forge := Credentials{Kind: CredentialToken, Hosts: []string{"Forge.Example", "10.0.0.1", "::1"}}
	plain := Credentials{Kind: CredentialBasic, Hosts: []string{"forge.example"}, PlainHTTP: true}
	agent := Credentials{Kind: CredentialSSHAgent, Hosts: []string{"forge.example"}}
	for _, tc := range []struct {
		creds Credentials
		url   string
		rule  string // that refuses it; empty for none
	}{
		{token, "https://forge.example/r", ""},
		{token, "http://forge.example/r", "G9/plain_http"},
		{token, "http://10.0.0.1/r", "G9/plain_http"},
		{token, "http://localhost.forge.example/r", "G9/plain_http"},
		{token, "http://localhost:8080/r", ""},
		{token, "http://127.1.2.3/r", ""},
		{token, "http://[::ffff:127.0.0.1]/r", ""},
		{token, "/srv/r", ""},
		{token, "git@forge.example:r", "G9/profile"},
		{forge, "https://forge.example:8443/r", ""},
		{forge, "https://FORGE.example/r", ""},
		{forge, "https://10.0.0.1/r", ""},
		{forge, "http://[::1]:80/r", ""},
		{forge, "https://forge.example.evil/r", "G9/host"},
		{forge, "https://evil.forge.example/r", "G9/host"},
		{forge, "https://forge.example./r", "G9/host"},
		{forge, "http://127.0.0.1/r", "G9/host"},
		{forge, "file:///srv/r", ""},
		{plain, "http://forge.example/r", ""},
		{plain, "http://evil.example/r", "G9/host"},
		{agent, "ssh://git@forge.example:2222/r", ""},
		{agent, "git@forge.example:r", ""},
		{agent, "git@evil.example:forge.example/r", "G9/host"},
	} {
		u, err := policies.ParseGitURL(tc.url)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if refused, ok := errors.AsType[*localError](tc.creds.fits(u)); ok {
			got = refused.rule
		}
		if got != tc.rule {
			t.Errorf("%v for %v at %s: %q, want %q", tc.creds, tc.creds.Hosts, tc.url, got, tc.rule)
		}
	}
}
