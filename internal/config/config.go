// Package config reads holdfast.yaml (I3): strictly, with every problem at its
// line and column, and with secrets that cannot be printed.
//
// [Load], [LoadDefault] and [Parse] return a [Config] that is checked and in
// which every default is filled in, so that its users read numbers and never
// decide about them. The keys, with a line about each, are in
// holdfast.example.yaml at the root of the repository.
package config

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is one configuration, checked and with its defaults filled in. It is
// not changed after it was loaded and may be shared by goroutines.
type Config struct {
	Temporal Temporal `yaml:"temporal"`
	// Policy names the policy profile of agents that name none. Defaults to
	// "default".
	Policy string `yaml:"policy"`
	// Policies are the user's own policy profiles, as they were written but
	// with aliases, merge keys and variables expanded; see OwnPolicies.
	Policies     map[string]*yaml.Node  `yaml:"policies"`
	AuthProfiles map[string]AuthProfile `yaml:"auth_profiles"`
	Providers    map[string]Provider    `yaml:"providers"`
	Agents       map[string]Agent       `yaml:"agents"`
	// Limits are those of providers that set none (M2.2).
	Limits    Limits          `yaml:"limits"`
	Channels  Channels        `yaml:"channels"`
	Git       Git             `yaml:"git"`
	Tools     map[string]Tool `yaml:"tools"`
	Storage   Storage         `yaml:"storage"`
	Telemetry Telemetry       `yaml:"telemetry"`
	Gateway   Gateway         `yaml:"gateway"`

	file string
}

// File is the name of the file that c came from; empty if there was none.
func (c *Config) File() string { return c.file }

// Temporal says which Temporal service is used. Empty fields leave the choice
// to the flags and to the SDK's TEMPORAL_* environment and profile file, which
// are stronger than this section (I1).
type Temporal struct {
	Address   string `yaml:"address"`
	Namespace string `yaml:"namespace"`
}

// Dialects of the model providers (M1).
const (
	DialectOpenAIResponses = "openai-responses"
	DialectOpenAIChat      = "openai-chat"
	DialectAnthropic       = "anthropic"
	DialectGemini          = "gemini"
	DialectChatGPT         = "chatgpt"
)

// Provider is one model endpoint (M1).
type Provider struct {
	Dialect string `yaml:"dialect" oneof:"openai-responses|openai-chat|anthropic|gemini|chatgpt"`
	// BaseURL defaults to the vendor's own address, where the dialect has one.
	BaseURL string `yaml:"base_url"`
	// AuthProfiles are tried in this order of preference (P6).
	AuthProfiles []string `yaml:"auth_profiles"`
	// Models are the siblings that may stand in for each other, in order (M3.6).
	Models []Model `yaml:"models"`
	// Headers are added to every request. Their values may be secret, but
	// credentials belong in auth profiles.
	Headers map[string]Secret `yaml:"headers"`
	// Proxy is the URL of an HTTP proxy; empty means none.
	Proxy string `yaml:"proxy"`
	// CAFile is a PEM file of certificate authorities trusted besides the
	// system's.
	CAFile string `yaml:"ca_file"`
	// Stream says whether answers are asked for as streams. Defaults to true.
	Stream *bool `yaml:"stream"`
	// Limits are in force for this provider; what it does not set comes from
	// the top of the file.
	Limits Limits `yaml:"limits"`
}

// Streaming says whether answers are asked for as streams.
func (p Provider) Streaming() bool { return p.Stream == nil || *p.Stream }

// Model returns the model of that name.
func (p Provider) Model(name string) (Model, bool) {
	for _, m := range p.Models {
		if m.Name == name {
			return m, true
		}
	}
	return Model{}, false
}

// Model is one model of a provider. In the file it is a name, or a mapping.
type Model struct {
	Name string `yaml:"name"`
	// ContextWindow is in tokens; 0 means unknown.
	ContextWindow int `yaml:"context_window" range:"not negative"`
	// InputPrice and OutputPrice are per million tokens, in whatever currency
	// the operator counts.
	InputPrice  float64 `yaml:"input_price" range:"not negative"`
	OutputPrice float64 `yaml:"output_price" range:"not negative"`
}

func (m *Model) fromText(name string) { m.Name = name }

// Agent is a named way to run a model (20-model).
type Agent struct {
	// Model is the requested "provider/model".
	Model string `yaml:"model"`
	// Fallbacks are tried in this order (M3.6).
	Fallbacks       []string `yaml:"fallbacks"`
	System          string   `yaml:"system"`
	MaxOutputTokens int      `yaml:"max_output_tokens" range:"not negative"` // 0: the provider's own limit
	Temperature     *float64 `yaml:"temperature,omitempty"`
	ReasoningEffort string   `yaml:"reasoning_effort,omitempty" oneof:"none|minimal|low|medium|high|xhigh"`
	// Policy names a policy profile. Defaults to the file's Policy.
	Policy string `yaml:"policy"`
	// MaxRetries overrides the number of retries (M3.4); nil means the policy's.
	MaxRetries *int `yaml:"max_retries,omitempty" range:"not negative"`
	// Deadline bounds a run. Defaults to 30 minutes.
	Deadline time.Duration `yaml:"deadline" range:"positive"`
	Tools    []string      `yaml:"tools"`
	// SilenceToken is the answer that means "nothing to say" and counts as a
	// success (P4.12).
	SilenceToken string `yaml:"silence_token"`
	// StartupBuffering holds the opening events until the first content, so
	// that a retry before it is invisible (M2.11). Defaults to true.
	StartupBuffering *bool `yaml:"startup_buffering"`
	// SlowStream is the slow-stream guard (M2.11). Defaults to off.
	SlowStream SlowStream `yaml:"slow_stream"`
	// ContinueMidStream lets another candidate go on with a text that broke off
	// (M2.11). Defaults to false.
	ContinueMidStream bool `yaml:"continue_mid_stream"`
}

// BuffersStartup says whether the opening events of a stream are held until
// its first content (M2.11).
func (a Agent) BuffersStartup() bool { return a.StartupBuffering == nil || *a.StartupBuffering }

// SlowStream makes a stream that stays under TokensPerSecond for the time For
// count as a timeout (M2.11). Zero values switch it off.
type SlowStream struct {
	TokensPerSecond float64       `yaml:"tokens_per_second" range:"not negative"`
	For             time.Duration `yaml:"for"`
}

// Limits bound the phases of one model request (M2.2).
type Limits struct {
	Connect          time.Duration `yaml:"connect" range:"positive"`
	Headers          time.Duration `yaml:"headers" range:"positive"`
	HeadersNoStream  time.Duration `yaml:"headers_no_stream" range:"positive"`
	FirstEvent       time.Duration `yaml:"first_event" range:"positive"`
	Silence          time.Duration `yaml:"silence" range:"positive"`
	SilenceWithPings time.Duration `yaml:"silence_with_pings" range:"positive"`
	Progress         time.Duration `yaml:"progress" range:"positive"`
}

// Tool is something an agent may call (M4).
type Tool struct {
	Kind string `yaml:"kind" oneof:"mcp|activity"`
	// URL or Command reach an MCP server: over HTTP, or as a child process that
	// speaks on its standard input and output.
	URL     string   `yaml:"url,omitempty"`
	Command []string `yaml:"command,omitempty"`
	// TaskQueue is where the activity of a tool of kind "activity" runs.
	TaskQueue string `yaml:"task_queue,omitempty"`
	// Retryable lets a failed call run again (P8). Defaults to false.
	Retryable bool `yaml:"retryable"`
	// Retries of a retryable tool. Defaults to 2 (P8).
	Retries *int `yaml:"retries" range:"not negative"`
	// Approval is "none" or "required".
	Approval string `yaml:"approval" oneof:"none|required"`
}

// Channels are the accounts that sends may use (30-channels).
type Channels struct {
	Discord  Discord  `yaml:"discord"`
	Telegram Telegram `yaml:"telegram"`
}

// Discord holds the accounts of Discord.
type Discord struct {
	Accounts map[string]DiscordAccount `yaml:"accounts"`
}

// DiscordAccount is one bot.
type DiscordAccount struct {
	Token Secret `yaml:"token"`
	// APIURL defaults to https://discord.com/api/v10.
	APIURL string `yaml:"api_url"`
}

// Telegram holds the accounts of Telegram.
type Telegram struct {
	Accounts map[string]TelegramAccount `yaml:"accounts"`
}

// TelegramAccount is one bot.
type TelegramAccount struct {
	Token Secret `yaml:"token"`
	// APIURL defaults to https://api.telegram.org.
	APIURL string `yaml:"api_url"`
	// ReviewChat is the id of the chat to which candidates are forwarded when a
	// send's fate is unknown (C4); empty means that it is off.
	ReviewChat string `yaml:"review_chat"`
}

// Git is the managed Git section (50-git).
type Git struct {
	Engine string `yaml:"engine" oneof:"auto|go-git|git"`
	// Host is the name of this host in the task queue of the checkouts on its
	// disk (G11). Defaults to the machine's host name; empty if that is unknown.
	Host string `yaml:"host"`
	// Roots are the directories of this host that may hold managed checkouts.
	Roots []string `yaml:"roots"`
	// SharedRoots are on storage that every host sees (G11).
	SharedRoots  []string                  `yaml:"shared_roots"`
	Limits       GitLimits                 `yaml:"limits"`
	AuthProfiles map[string]GitAuthProfile `yaml:"auth_profiles"`
}

// GitLimits bound what a remote may make a worker use (G12).
type GitLimits struct {
	Memory  Size  `yaml:"memory" range:"memory"`
	Disk    Size  `yaml:"disk" range:"positive"`
	Objects int64 `yaml:"objects" range:"positive"`
}

// Storage says where large payloads are kept (M5).
type Storage struct {
	// Blobs is a directory that every worker sees. Defaults to
	// "./.holdfast/blobs".
	Blobs string `yaml:"blobs"`
}

// Telemetry says where logs and metrics go (I5).
type Telemetry struct {
	// LogFormat is "auto" (text on a terminal, JSON otherwise), "text" or "json".
	LogFormat string `yaml:"log_format" oneof:"auto|text|json"`
	// MetricsAddress is where Prometheus may scrape; empty means nowhere.
	MetricsAddress string `yaml:"metrics_address"`
}
