package model

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// heartbeatEvery keeps a cancellation within 5 s of the provider's socket
// (M3.13) and a lost worker noticeable.
const heartbeatEvery = 2 * time.Second

// Provider is one model server.
type Provider struct {
	Dialect Dialect
	BaseURL string
	Header  map[string]string
	Limits  Limits
	// AuthProfiles in the order they are tried; empty for servers that want no
	// key.
	AuthProfiles []string
	Models       []Model
	// NoStream asks for whole answers instead of streams.
	NoStream bool
	// Transport options; the connect limit comes from Limits.
	Transport attempt.Options
}

// Model is one model of a provider.
type Model struct {
	Name          string
	ContextWindow int
	InputPrice    float64 // per million tokens
	OutputPrice   float64
}

// Agent is what a run takes from the configuration.
type Agent struct {
	Model           string // "provider/model"
	Fallbacks       []string
	System          string
	MaxOutputTokens int64
	Temperature     *float64
	ReasoningEffort string
	Policy          string
	MaxRetries      *int
	Deadline        time.Duration // defaults to DefaultDeadline
	SilenceToken    string
}

// Config of the activities.
type Config struct {
	Providers map[string]Provider
	Agents    map[string]Agent
	// Policy finds a policy profile by name; "" is the configured default.
	Policy func(name string) (policies.Policy, error)
	// Secret resolves an auth profile; called for each attempt.
	Secret func(ctx context.Context, authProfile string) (string, error)
	// SinkAllowed says whether live text may be posted to a URL. Defaults to no.
	SinkAllowed func(url string) bool
	Logger      *slog.Logger
}

// Activities holds the model activities.
type Activities struct {
	config  Config
	clients map[string]*http.Client // by provider
	sinks   *sinks
	drains  sync.WaitGroup
	closing context.Context
	close   context.CancelFunc
}

// New checks c and returns the activities.
func New(c Config) (*Activities, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.SinkAllowed == nil {
		c.SinkAllowed = func(string) bool { return false }
	}
	c.Providers = maps.Clone(c.Providers)
	a := &Activities{config: c, clients: map[string]*http.Client{}}
	a.closing, a.close = context.WithCancel(context.Background())
	a.sinks = newSinks(a.closing, c.SinkAllowed, c.Logger)
	for name, p := range c.Providers {
		u, err := url.Parse(p.BaseURL)
		if err != nil || u.Host == "" {
			return nil, fmt.Errorf("provider %q: the base URL is not a URL", name)
		}
		if p.Dialect == nil {
			return nil, fmt.Errorf("provider %q: no dialect", name)
		}
		p.Limits = p.Limits.WithDefaults()
		p.Transport.ConnectTimeout = p.Limits.Connect
		c.Providers[name] = p
		a.clients[name] = attempt.NewClient(p.Transport)
	}
	return a, nil
}

// Close stops background reads of finished streams and posts to sinks, and
// waits for them.
func (a *Activities) Close() {
	a.close()
	a.drains.Wait()
	a.sinks.posts.Wait()
	for _, c := range a.clients {
		c.CloseIdleConnections()
	}
	a.sinks.client.CloseIdleConnections()
}

// Attempt makes one model request. Its error is a [contract.Failure] built by
// package failure, never retryable by the server, with what was complete as a
// [transcript.Answer] beside it.
func (a *Activities) Attempt(ctx context.Context, req transcript.Request) (transcript.Answer, error) {
	ctx, cancel := beforeDeadline(ctx)
	defer cancel()
	x, err := a.prepare(ctx, req)
	if err != nil {
		return transcript.Answer{}, failure.New(*err, failure.Options{})
	}
	stop := heartbeat(ctx)
	defer stop()
	answer, callErr := x.run(ctx, a)
	if callErr == nil {
		return answer, nil
	}
	answer.Text = cutText(answer.Text, maxPartial)
	return transcript.Answer{}, failure.New(x.failure(ctx, callErr), failure.Options{Partial: answer})
}

// deadlineMargin is kept of an activity's time for its failure to travel in: the
// SDK drops what comes after, and usage and text with it (M2.10).
const deadlineMargin = 200 * time.Millisecond

func beforeDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(deadlineMargin, time.Until(deadline)/10)))
}

// maxPartial bounds the text, in bytes, that travels with a failure, which must
// stay below the 4 KiB that the server keeps.
const maxPartial = 2 << 10

func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "")
}

// exchange is one attempt under way.
type exchange struct {
	provider Provider
	call     Call
	record   *attempt.Record
	dog      *watchdog
	stall    error // the watchdog's word, if it spoke
}

func (a *Activities) prepare(ctx context.Context, req transcript.Request) (*exchange, *contract.Failure) {
	name := req.Candidate.Provider
	provider, ok := a.config.Providers[name]
	if !ok {
		return nil, &contract.Failure{
			Surface: string(policies.SurfaceModel), Reason: string(policies.ReasonModelNotFound), Rule: "I3/configuration",
			Failover: true, Permanent: true, Effect: string(policies.EffectNone),
			Message: fmt.Sprintf("no provider %q is configured on this worker; see providers", name),
		}
	}
	key := ""
	if req.Candidate.AuthProfile != "" {
		var err error
		key, err = a.config.Secret(ctx, req.Candidate.AuthProfile)
		if ctx.Err() != nil {
			return nil, ended(ctx, name)
		}
		if err != nil {
			return nil, &contract.Failure{
				Surface: string(policies.SurfaceModel), Reason: string(policies.ReasonAuth), Rule: "I3/secret",
				Failover: true, Permanent: true, Effect: string(policies.EffectNone),
				Message: fmt.Sprintf("the secret of auth profile %q cannot be resolved; see auth_profiles.%s",
					req.Candidate.AuthProfile, req.Candidate.AuthProfile),
			}
		}
		redact.Add(key)
	}
	x := &exchange{provider: provider, record: attempt.New()}
	x.call = Call{Request: req, BaseURL: provider.BaseURL, APIKey: key, Header: provider.Header, Client: a.clients[name]}
	return x, nil
}

// run makes the request under the watchdog's eye.
func (x *exchange) run(ctx context.Context, a *Activities) (transcript.Answer, error) {
	// The request outlives the activity's own context by the short drain of a
	// finished stream (M2.7); until then it ends with it.
	reqCtx, cancel := context.WithCancelCause(attempt.With(context.WithoutCancel(ctx), x.record))
	detach := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	defer detach()

	sink := a.sinks.open(&x.call.Request)
	defer sink.Close()
	x.dog = &watchdog{limits: x.provider.Limits, streaming: x.call.Request.Streaming, record: x.record}
	text := 0
	x.call.Observe = func(e Event) {
		x.dog.observe(e, time.Now())
		if e.Kind != EventText || text > maxText {
			return
		}
		if text += len(e.Text); text > maxText {
			cancel(tooLargeError{}) // nothing more is read
			return
		}
		sink.Text(e.Text)
	}
	watching, stopWatching := context.WithCancel(reqCtx)
	defer stopWatching()
	go x.dog.watch(watching, cancel)

	body := &restBody{}
	x.call.Client = body.client(x.call.Client)
	answer, err := x.provider.Dialect.Attempt(reqCtx, &x.call)
	answer = tidy(answer)
	if text > maxText || err == nil && !fits(answer) {
		err = tooLargeError{}
	}
	if err == nil {
		a.drains.Go(func() { body.drain(a.closing, cancel) })
		err = spoken(answer, x.call.Request.SilenceToken)
		return answer, err
	}
	x.stall = context.Cause(reqCtx)
	cancel(err)
	return answer, err
}

// spoken refuses an answer that says nothing, unless it is exactly the token by
// which the agent keeps silent (P4.12).
func spoken(a transcript.Answer, silence string) error {
	if strings.TrimSpace(a.Text) != "" || silence != "" && a.Text == silence {
		return nil
	}
	return &StreamError{Reason: policies.ReasonEmptyResponse, Detail: "the response completed without any text"}
}

// heartbeat tells the server from time to time that the attempt goes on. Outside
// an activity there is nobody to tell.
func heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() { close(done) }
}

// Notice tells the run's sink that it waits.
func (a *Activities) Notice(ctx context.Context, n transcript.Notice) error {
	return a.sinks.notify(ctx, n)
}
