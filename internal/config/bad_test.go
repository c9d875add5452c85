package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// models is a provider for the cases below to refer to.
const models = "providers: {p: {dialect: gemini, models: [alpha, beta]}}\n"

// I3: every problem names file, line and column and says what to do.
func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		// Keys.
		{"unknown top key", "agnets: {}", `f:1:1: unknown key "agnets" (did you mean "agents"?)`},
		{"unknown key in a mapping", "git:\n  engin: git", `f:2:3: unknown key "engin" (did you mean "engine"?)`},
		{"unknown key under a name", models + "agents:\n  a: {model: p/alpha, max_retrys: 1}", `f:3:23: unknown key "max_retrys" (did you mean "max_retries"?)`},
		{"swapped letters", "liimts: {}", `f:1:1: unknown key "liimts" (did you mean "limits"?)`},
		{"nothing near", "zzzzzzzz: 1", `f:1:1: unknown key "zzzzzzzz"`},
		{"duplicate key", "git: {}\nstorage: {}\ngit: {}", `f:3:1: the key "git" stands twice; the first is in line 1`},
		{"duplicate name", "tools:\n  a: {kind: mcp, url: 'http://h'}\n  a: {kind: mcp, url: 'http://h'}", `f:3:3: the key "a" stands twice; the first is in line 2`},
		{"key that is a list", "? [a]\n: b", `f:1:3: a key must be text, found a list`},
		{"unknown key from a merge", models + "agents:\n  a: {model: p/alpha, <<: {modle: x}}", `f:3:28: unknown key "modle" (did you mean "model"?)`},
		{"merge of a text", "git: {<<: x}", `f:1:11: << takes a mapping or a list of mappings, found text`},
		{"bad name", "tools: {a/b: {kind: mcp, url: 'http://h'}}", `f:1:9: bad name "a/b": use letters, digits, -, _ and ., and begin with a letter or digit`},
		{"empty name", "policies: {\"\": {}}", `f:1:12: bad name "": it is empty`},

		// Types.
		{"text for a mapping", "git: auto", `f:1:6: expected a mapping, found text`},
		{"list for a mapping", "git: []", `f:1:6: expected a mapping, found a list`},
		{"root is a list", "- a", `f:1:1: expected a mapping, found a list`},
		{"text for names", "agents: x", `f:1:9: expected a mapping of names, found text`},
		{"text for a list", "git: {roots: ./x}", `f:1:14: expected a list, found text: write [a, b]`},
		{"number for text", models + "agents: {a: {model: p/alpha, system: 7}}", `f:2:38: expected text, found a number: put it in quotes`},
		{"number as an id", "channels: {telegram: {accounts: {m: {token: tttttt, review_chat: -100}}}}", `f:1:66: expected text, found a number: put it in quotes`},
		{"date for text", "storage: {blobs: 2024-01-01}", `f:1:18: expected text, found a date: put it in quotes`},
		{"bool for text", "policy: true", `f:1:9: expected text, found true or false: put it in quotes`},
		{"nothing for text", "policy:", `f:1:8: expected text, found nothing: write a value or remove the key`},
		{"mapping for text", "policy: {a: b}", `f:1:9: expected text, found a mapping`},
		{"text for a number", models + "agents: {a: {model: p/alpha, max_retries: few}}", `f:2:43: expected a whole number, found "few"`},
		{"quoted number", models + "agents: {a: {model: p/alpha, max_retries: \"3\"}}", `f:2:43: expected a whole number, found "3"`},
		{"fraction for a whole number", models + "agents: {a: {model: p/alpha, max_retries: 1.5}}", `f:2:43: expected a whole number, found a number`},
		{"text for a bool", "tools: {a: {kind: mcp, url: 'http://h', retryable: yes}}", `f:1:52: expected true or false, found "yes"`},
		{"not a number", models + "agents: {a: {model: p/alpha, temperature: .nan}}", `f:2:43: expected a number, found ".nan"`},
		{"negative", models + "agents: {a: {model: p/alpha, max_retries: -1}}", `f:2:43: max_retries must be zero or more`},
		{"zero limit", "limits: {silence: 0s}", `f:1:19: silence must be above zero`},
		{"own tag", "policy: !secret x", `f:1:9: the tag "!secret" has no meaning here: remove it`},
		{"binary tag", "policy: !!binary eA==", `f:1:9: the tag "!!binary" has no meaning here: remove it`},
		{"unknown word", "git: {engine: gogit}", `f:1:15: unknown engine "gogit" (did you mean "go-git"?): one of auto, go-git, git`},

		// Durations and sizes.
		{"duration without unit", "limits: {connect: 90}", `f:1:19: bad duration "90": it has no unit: write 90s`},
		{"quoted duration without unit", "limits: {connect: \"90\"}", `f:1:19: bad duration "90": it has no unit: write 90s`},
		{"unknown unit", "limits: {connect: 1day}", `f:1:19: bad duration "1day": write a number with a unit (ms, s, m, h), such as 90s or 1m30s`},
		{"negative duration", "limits: {connect: -1s}", `f:1:19: bad duration "-1s": it is negative`},
		{"duration that is a list", "limits: {connect: [1s]}", `f:1:19: expected a duration such as 90s, found a list`},
		{"size without unit", "git: {limits: {memory: 512}}", `f:1:24: bad size "512": it has no unit: write 512MiB, or another of B, KiB, MiB, GiB, TiB`},
		{"too little memory", "git: {limits: {memory: 31MiB}}", `f:1:24: memory must be at least 32MiB`},
		{"decimal unit", "git: {limits: {memory: 512MB}}", `f:1:24: bad size "512MB": the units are B, KiB, MiB, GiB and TiB`},

		// Variables.
		{"missing variable", "storage:\n  blobs: \"x/${NOPE}\"", `f:2:10: the environment variable NOPE is not set: set it, or remove this key`},
		{"open variable", "storage: {blobs: \"${NOPE\"}", "f:1:18: ${ has no closing }: write ${NAME}, or $${ for a literal ${"},
		{"variable with a default", "storage: {blobs: \"${A:-b}\"}", "f:1:18: bad variable name \"A:-b\": write ${NAME} with letters, digits and underscores, or $${ for a literal ${"},
		{"variable in a key", "\"${HOME}\": 1", `f:1:1: unknown key "${HOME}"`},
		{"variable of the wrong kind", "limits: {connect: \"${WORD}\"}", `f:1:19: bad duration "${WORD}": write a number with a unit (ms, s, m, h), such as 90s or 1m30s`},
		{"variable without a unit", "limits: {connect: \"${NUMBER}\"}", `f:1:19: bad duration "${NUMBER}": it has no unit`},
		{"variable that is no choice", "git: {engine: \"${WORD}\"}", `f:1:15: unknown engine "${WORD}": one of auto, go-git, git`},
		{"missing in a profile", "policies: {a: {b: \"${NOPE}\"}}", `f:1:19: the environment variable NOPE is not set: set it, or remove this key`},

		// P1: channel timings are built in.
		{"retry of an account", "channels:\n  discord:\n    accounts:\n      m: {token: tttttt, retry: 3}", `f:4:26: channel timings are built in and cannot be set: remove "retry"`},
		{"attempts of a channel", "channels: {telegram: {attempts: 3}}", `f:1:23: channel timings are built in and cannot be set: remove "attempts"`},
		{"delay of all channels", "channels: {min_delay: 1s}", `f:1:12: channel timings are built in and cannot be set: remove "min_delay"`},
		{"backoff beside the accounts", "channels: {discord: {accounts: {maxBackoff: 1s}}}", `f:1:33: channel timings are built in and cannot be set: remove "maxBackoff"`},
		{"channels in a profile", "policies:\n  a: {discord: {attempts: 9}}", `f:2:7: "discord": channel timings (P1.1–P1.5) are built in and cannot be set; remove the key`},

		// Auth profiles.
		{"no source", models + "auth_profiles: {k: {provider: p, kind: api_key}}", `f:2:17: auth_profiles.k needs exactly one of value, file and command, and has none`},
		{"two sources", models + "auth_profiles: {k: {provider: p, kind: token, value: v, file: f}}", `f:2:17: auth_profiles.k needs exactly one of value, file and command, and has value and file`},
		{"empty value", models + "auth_profiles: {k: {provider: p, kind: api_key, value: \"${EMPTY}\"}}", `f:2:56: value must not be empty`},
		{"empty command", models + "auth_profiles: {k: {provider: p, kind: api_key, command: []}}", `f:2:58: command must not be empty`},
		{"source for none", models + "auth_profiles: {k: {provider: p, kind: none, value: v}}", `f:2:46: kind none takes no value: remove it`},
		{"no kind", models + "auth_profiles: {k: {provider: p, value: v}}", `f:2:17: auth_profiles.k lacks the key "kind"`},
		{"unknown provider", models + "auth_profiles: {k: {provider: q, kind: none}}", `f:2:31: unknown provider "q"`},

		// Providers.
		{"no dialect", "providers: {p: {models: [m]}}", `f:1:13: providers.p lacks the key "dialect"`},
		{"no base URL", "providers: {p: {dialect: openai-chat, models: [m]}}", `f:1:13: providers.p lacks the key "base_url": dialect openai-chat has no address of its own`},
		{"no models", "providers: {p: {dialect: gemini}}", `f:1:13: providers.p lacks models: list at least one`},
		{"model without a name", "providers: {p: {dialect: gemini, models: [{context_window: 5}]}}", `f:1:43: a model needs a name`},
		{"model twice", "providers: {p: {dialect: gemini, models: [m, {name: m}]}}", `f:1:46: "m" stands twice`},
		{"credentials in a URL", "providers: {p: {dialect: gemini, models: [m], base_url: \"https://u:hunter2@h/\"}}", `f:1:57: no credentials in URLs: remove the part before @ and use an auth profile`},
		{"scheme", "providers: {p: {dialect: gemini, models: [m], base_url: \"ftp://h/\"}}", `f:1:57: the scheme "ftp" is not supported: use http or https`},
		{"no URL", "providers: {p: {dialect: gemini, models: [m], base_url: localhost}}", `f:1:57: not a URL: write https://host/path`},
		{"query", "providers: {p: {dialect: gemini, models: [m], base_url: \"https://h/?key=x\"}}", `f:1:57: a query is not allowed in this URL: remove the part after ?`},
		{"proxy", "providers: {p: {dialect: gemini, models: [m], proxy: \"http://u@h:1\"}}", `f:1:54: no credentials in URLs: remove the part before @ and use an auth profile`},
		{"credential header", "providers: {p: {dialect: gemini, models: [m], headers: {Authorization: x}}}", `f:1:57: no credentials in headers: remove "Authorization" and use an auth profile`},
		{"header with a line break", "providers: {p: {dialect: gemini, models: [m], headers: {X-A: \"a\\nb\"}}}", `f:1:62: not the value of a header: it holds a line break or another control character`},
		{"unknown auth profile", "providers: {p: {dialect: gemini, models: [m], auth_profiles: [k]}}", `f:1:63: unknown auth profile "k": none is configured`},
		{"auth profile of another", "auth_profiles: {key: {provider: q, kind: none}}\nproviders: {p: {dialect: gemini, models: [m], auth_profiles: [key]}, q: {dialect: gemini, models: [m]}}", `f:2:63: auth profile "key" belongs to provider "q", not to "p"`},

		// Agents.
		{"no model", models + "agents:\n  a: {}", `f:3:3: agents.a lacks the key "model"`},
		{"model without provider", models + "agents: {a: {model: alpha}}", `f:2:21: expected provider/model, found "alpha"`},
		{"unknown provider of a model", models + "agents: {a: {model: q/alpha}}", `f:2:21: unknown provider "q"`},
		{"unknown model", models + "agents: {a: {model: p/alhpa}}", `f:2:21: provider "p" has no model "alhpa" (did you mean "alpha"?)`},
		{"unknown fallback", models + "agents: {a: {model: p/alpha, fallbacks: [p/beta, p/gamma]}}", `f:2:50: provider "p" has no model "gamma"`},
		{"fallback to itself", models + "agents: {a: {model: p/alpha, fallbacks: [p/alpha]}}", `f:2:42: "p/alpha" is the agent's model already`},
		{"unknown policy", models + "agents: {a: {model: p/alpha, policy: simpel}}", `f:2:38: unknown policy "simpel" (did you mean "simple"?)`},
		{"unknown policy at the top", "policy: fast", `f:1:9: unknown policy "fast"`},
		{"unknown tool", models + "agents: {a: {model: p/alpha, tools: [serch]}}\ntools: {search: {kind: mcp, url: 'http://h'}}", `f:2:38: unknown tool "serch" (did you mean "search"?)`},
		{"temperature", models + "agents: {a: {model: p/alpha, temperature: 3}}", `f:2:43: temperature must be from 0 to 2`},
		{"half a guard", models + "agents: {a: {model: p/alpha, slow_stream: {for: 3s}}}", `f:2:43: slow_stream needs both tokens_per_second and for, or neither`},

		// Tools, channels, Git, gateway.
		{"tool without address", "tools: {a: {kind: mcp}}", `f:1:9: tools.a needs exactly one of url and command`},
		{"tool with a queue", "tools: {a: {kind: mcp, url: 'http://h', task_queue: q}}", `f:1:41: kind mcp takes no task_queue: remove it`},
		{"activity without queue", "tools: {a: {kind: activity}}", `f:1:9: tools.a lacks the key "task_queue"`},
		{"no token", "channels: {discord: {accounts: {m: {}}}}", `f:1:33: channels.discord.accounts.m lacks the key "token"`},
		{"empty token", "channels: {discord: {accounts: {m: {token: \"${EMPTY}\"}}}}", `f:1:44: token must not be empty`},
		{"token with a space", "channels: {telegram: {accounts: {m: {token: \"Bot abc\"}}}}", `f:1:45: token contains white space: write the token alone`},
		{"API URL", "channels: {telegram: {accounts: {m: {token: tttttt, api_url: x}}}}", `f:1:62: not a URL: write https://host/path`},
		{"basic without username", "git: {auth_profiles: {g: {kind: basic, value: v}}}", `f:1:23: git.auth_profiles.g lacks the key "username"`},
		{"SSH key by value", "git: {auth_profiles: {g: {kind: ssh_key, file: f, value: v}}}", `f:1:51: kind ssh_key takes no value: name the private key with file`},
		{"known hosts of a token", "git: {auth_profiles: {g: {kind: token, value: v, known_hosts: k}}}", `f:1:50: kind "token" takes no known_hosts: remove it`},
		{"plain http of SSH", "git: {auth_profiles: {g: {kind: ssh_agent, plain_http: true}}}", `f:1:44: kind "ssh_agent" takes no plain_http: remove it`},
		{"host of a profile", "git: {auth_profiles: {g: {kind: token, value: v, hosts: ['https://h/']}}}", `f:1:58: not a host: write its name or address alone, such as github.com or ::1`},
		{"host of a profile twice", "git: {auth_profiles: {g: {kind: token, value: v, hosts: [h, h]}}}", `f:1:61: "h" stands twice`},
		{"host with a dot behind", "git: {auth_profiles: {g: {kind: token, value: v, hosts: [localhost.]}}}", `f:1:58: not a host: write its name or address alone, such as github.com or ::1`},
		{"no host of a profile", "git: {auth_profiles: {g: {kind: token, value: v, hosts: []}}}", `f:1:57: no host is listed: list some, or remove hosts to allow all`},
		{"host", "git: {host: a/b}", `f:1:13: not a name for a task queue: use letters, digits, -, _ and ., and begin with a letter or digit`},
		{"root in both", "git: {roots: [./a], shared_roots: [a/]}", `f:1:36: "a" is listed in git.roots too: it is either this host's or shared`},
		{"gateway open to all", "gateway: {address: \"0.0.0.0:80\"}", `f:1:20: without gateway.tokens the gateway listens on loopback only: add a token, or use 127.0.0.1`},
		{"gateway address", "gateway: {admin_address: localhost}", `f:1:26: not an address: write host:port, such as 127.0.0.1:8080`},
		{"scope", "gateway: {tokens: {t: {value: vvvvvv, scopes: [send]}}}", `f:1:48: unknown scope "send" (did you mean "sends"?)`},
		{"sink", "gateway: {sinks: {allow: [\"https://u:p@h/\"]}}", `f:1:27: no credentials in URLs: remove the part before @ and use an auth profile`},

		// YAML itself.
		{"syntax", "git:\n  roots: [a\nstorage: {}", "f:2:3: not valid YAML: did not find expected ',' or ']'; inside { } and [ ], ${NAME} must stand in quotes"},
		{"tab", "git:\n\tengine: git", "f:2:1: not valid YAML: a tab cannot indent, use spaces"},
		{"unknown anchor shows no text", "policy: *hunter2", "f:1:1: not valid YAML: unknown anchor '…' referenced"},
		{"two documents", "policy: a\n---\npolicy: b", `f:2:1: a second document begins here: a configuration is one document`},

		// Several at once, in the order of the file.
		{"all are reported", "limits:\n  connect: 5\n  slience: 1s\ngit:\n  engine: svn\n  roots: x\n", `f:2:12: bad duration "5": it has no unit: write 5s
f:3:3: unknown key "slience" (did you mean "silence"?)
f:5:11: unknown engine "svn": one of auto, go-git, git
f:6:10: expected a list, found text: write [a, b]`},
	}
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"EMPTY": "", "WORD": "hunter2", "NUMBER": "8"}[name]
		return v, ok
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(tt.text), env)
			if err == nil {
				t.Fatalf("accepted:\n%s", tt.text)
			}
			if err.Error() != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.text, err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the message shows what a variable or URL holds: %v", err)
			}
			var all Errors
			if !errors.As(err, &all) || all[0].File != "f" || all[0].Line == 0 || all[0].Column == 0 {
				t.Errorf("not typed: %#v", err)
			}
			if one, ok := errors.AsType[*Error](err); !ok || one != all[0] {
				t.Errorf("the first problem cannot be unwrapped: %v", one)
			}
		})
	}
}

// Hostile files get a clear error in bounded time and memory.
func TestHostileInput(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("policies:\n  a0: &a0 {x: y}\n")
	for i := range 12 {
		item := fmt.Sprintf("*a%d, ", i)
		fmt.Fprintf(&bomb, "  a%d: &a%d {l: [%s]}\n", i+1, i+1, strings.Repeat(item, 10))
	}
	tests := []struct{ name, text, want string }{
		{"alias bomb", bomb.String(), "more than 100000 values once aliases are expanded: use fewer aliases"},
		{"alias in itself", "policies: {a: &a {b: *a}}", "nested deeper than 32 levels: an alias may contain itself"},
		{"merge of itself", "policies: {a: &a {<<: *a}}", "nested deeper than 32 levels: an alias may contain itself"},
		{"list in itself", "git: {roots: &r [*r]}", "expected text, found a list"},
		{"deep lists", "policies: {a: {b: " + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}}", "nested deeper than 32 levels: an alias may contain itself"},
		{"very deep", strings.Repeat("[", 200_000), "exceeded max depth"},
		{"too large", "policy: a\n#" + strings.Repeat("x", maxFileSize), "f:1:1: the file is larger than 4 MiB"},
		{"a large value", "limits: {connect: " + strings.Repeat("a", 1<<20) + "}", `bad duration "` + strings.Repeat("a", 60) + `…"`},
		{"a large key", strings.Repeat("a", 1000) + ": b", `unknown key "` + strings.Repeat("a", 60) + `…"`},
		{"many problems", "git:\n" + manyKeys(50_000), `unknown key`},
		{"expanding variables", "policies: {a: {b: [" + strings.Repeat("\"${BIG}\", ", 30) + "]}}", "larger than 16 MiB once all variables are expanded"},
		{"expanding one value", "policy: \"" + strings.Repeat("${BIG}", 300_000) + "\"", "larger than 1 MiB once its variables are expanded"},
	}
	big := strings.Repeat("x", 1<<20)
	env := func(string) (string, bool) { return big, true }
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse("f", []byte(tt.text), env)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %.300v\nwant %s", err, tt.want)
			}
			var all Errors
			if !errors.As(err, &all) || len(all) > maxErrors || len(err.Error()) > 30_000 {
				t.Errorf("%d problems in %d bytes of text", len(all), len(err.Error()))
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%d: 1\n", i)
	}
	return b.String()
}
