package config

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const exampleFile = "../../holdfast.example.yaml"

// exampleEnv has a value for each variable of the example file.
func exampleEnv(name string) (string, bool) {
	names := []string{"OPENAI_API_KEY", "OPENAI_PROJECT", "DISCORD_TOKEN", "TELEGRAM_TOKEN", "GITHUB_TOKEN", "GATEWAY_TOKEN"}
	return "canary-" + name, slices.Contains(names, name)
}

func loadExample(t testing.TB) *Config {
	t.Helper()
	c, err := Load(exampleFile, exampleEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// schemaPaths lists every key of the schema, with * for the user's own names.
func schemaPaths(prefix string, t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer:
		if t == nodeType {
			return nil
		}
		return schemaPaths(prefix, t.Elem())
	case reflect.Map:
		return schemaPaths(prefix+".*", t.Elem())
	case reflect.Slice:
		return schemaPaths(prefix+"[]", t.Elem())
	case reflect.Struct:
		if t == secretType {
			return nil
		}
		var paths []string
		for _, f := range fieldsOf(t) {
			path := join(prefix, f.key)
			paths = append(paths, path)
			paths = append(paths, schemaPaths(path, f.typ)...)
		}
		return paths
	}
	return nil
}

// filePaths lists the keys of a document in the shape of schemaPaths.
func filePaths(prefix string, t reflect.Type, n *yaml.Node, into map[string]bool) {
	for t.Kind() == reflect.Pointer && t != nodeType {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map:
		for i := 1; i < len(n.Content); i += 2 {
			filePaths(prefix+".*", t.Elem(), n.Content[i], into)
		}
	case t.Kind() == reflect.Slice:
		for _, item := range n.Content {
			filePaths(prefix+"[]", t.Elem(), item, into)
		}
	case t.Kind() == reflect.Struct && n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			f, ok := fieldNamed(fieldsOf(t), n.Content[i].Value)
			if !ok {
				continue
			}
			path := join(prefix, f.key)
			into[path] = true
			filePaths(path, f.typ, n.Content[i+1], into)
		}
	}
}

// I3: the example loads strictly and holds every key, each with a comment where
// it first appears.
func TestExampleHoldsEveryKey(t *testing.T) {
	t.Parallel()
	loadExample(t)
	data, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	present := map[string]bool{}
	filePaths("", reflect.TypeFor[Config](), doc.Content[0], present)
	schema := schemaPaths("", reflect.TypeFor[Config]())
	if len(schema) < 80 {
		t.Fatalf("the schema has only %d keys: the walk is broken", len(schema))
	}
	for _, path := range schema {
		path = strings.Replace(path, "providers.*.limits.", "limits.", 1) // the same keys
		if !present[path] {
			t.Errorf("holdfast.example.yaml lacks %s", path)
		}
		key := path[strings.LastIndexByte(path, '.')+1:]
		commented := regexp.MustCompile(`(?m)#.*\n\s*` + key + `:|\b` + key + `: .*#|\b` + key + `:.*\[?\{?\s+#`)
		if !commented.Match(data) && !structure[path] {
			t.Errorf("no line of holdfast.example.yaml with a comment names %s", path)
		}
	}
}

// structure lists keys that only hold others and speak for themselves.
var structure = map[string]bool{
	"channels.discord": true, "channels.discord.accounts": true,
	"channels.telegram": true, "channels.telegram.accounts": true,
	"gateway.sinks": true, "storage": true, "telemetry": true,
}

// Whatever the example calls a default is one.
func TestExampleDefaults(t *testing.T) {
	t.Parallel()
	full := loadExample(t)
	c, err := Parse("f", []byte(`
providers: {openai: {dialect: openai-responses, models: [m]}}
agents: {main: {model: openai/m}}
channels: {discord: {accounts: {main: {token: tttttt}}}, telegram: {accounts: {main: {token: tttttt}}}}
tools: {search: {kind: mcp, url: "http://h/"}}
git: {auth_profiles: {github: {kind: token, value: v}}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	same := map[string][2]any{
		"policy":             {full.Policy, c.Policy},
		"limits":             {full.Limits, c.Limits},
		"base_url":           {full.Providers["openai"].BaseURL, c.Providers["openai"].BaseURL},
		"stream":             {full.Providers["openai"].Streaming(), c.Providers["openai"].Streaming()},
		"deadline":           {full.Agents["main"].Deadline, c.Agents["main"].Deadline},
		"startup_buffering":  {full.Agents["main"].BuffersStartup(), c.Agents["main"].BuffersStartup()},
		"continue":           {full.Agents["main"].ContinueMidStream, c.Agents["main"].ContinueMidStream},
		"discord api_url":    {full.Channels.Discord.Accounts["main"].APIURL, c.Channels.Discord.Accounts["main"].APIURL},
		"telegram":           {full.Channels.Telegram.Accounts["main"].ReviewChat, c.Channels.Telegram.Accounts["main"].ReviewChat},
		"telegram api_url":   {full.Channels.Telegram.Accounts["main"].APIURL, c.Channels.Telegram.Accounts["main"].APIURL},
		"engine":             {full.Git.Engine, c.Git.Engine},
		"git limits":         {full.Git.Limits, c.Git.Limits},
		"git username":       {full.Git.AuthProfiles["github"].Username, c.Git.AuthProfiles["github"].Username},
		"tool":               {full.Tools["search"].Retryable, c.Tools["search"].Retryable},
		"tool retries":       {*full.Tools["search"].Retries, *c.Tools["search"].Retries},
		"tool approval":      {full.Tools["search"].Approval, c.Tools["search"].Approval},
		"storage":            {full.Storage, c.Storage},
		"log_format":         {full.Telemetry.LogFormat, c.Telemetry.LogFormat},
		"gateway address":    {full.Gateway.Address, c.Gateway.Address},
		"gateway admin addr": {full.Gateway.AdminAddress, c.Gateway.AdminAddress},
	}
	for what, v := range same {
		if !reflect.DeepEqual(v[0], v[1]) {
			t.Errorf("%s: the example says %v, the default is %v", what, v[0], v[1])
		}
	}
}
