package workers

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/activities/model/openai"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// dialects are the wires this version speaks, by their name in the
// configuration.
var dialects = map[string]model.Dialect{
	config.DialectOpenAIResponses: openai.Responses{},
}

func (w *Workers) modelActivities(o Options) (map[string]any, error) {
	providers, err := modelProviders(o)
	if err != nil {
		return nil, err
	}
	own, err := o.Config.OwnPolicies()
	if err != nil {
		return nil, err
	}
	m, err := model.New(model.Config{
		Providers: providers,
		Agents:    modelAgents(o.Config),
		Policy: func(name string) (policies.Policy, error) {
			if name == "" {
				name = o.Config.Policy
			}
			if p, ok := own[name]; ok {
				return p.Policy, nil
			}
			return profiles.Load(name)
		},
		Secret:      secrets(o.Config),
		SinkAllowed: o.Config.SinkAllowed,
		Logger:      o.Logger,
	})
	if err != nil {
		return nil, err
	}
	w.close = append(w.close, m.Close)
	return map[string]any{
		contract.ActivityModelPlan:    m.Plan,
		contract.ActivityModelAttempt: m.Attempt,
		contract.ActivityModelNotice:  m.Notice,
	}, nil
}

func modelProviders(o Options) (map[string]model.Provider, error) {
	providers := map[string]model.Provider{}
	for name, p := range o.Config.Providers {
		dialect, ok := dialects[p.Dialect]
		if !ok {
			o.Logger.Warn("this version does not speak the dialect of a provider; runs skip it", "provider", name, "dialect", p.Dialect)
			dialect = model.Unspoken{Dialect: p.Dialect}
		}
		transport, err := modelTransport(p)
		if err != nil {
			return nil, fmt.Errorf("provider %q: %w", name, err)
		}
		m := model.Provider{
			Dialect: dialect, BaseURL: p.BaseURL, Header: map[string]string{}, AuthProfiles: p.AuthProfiles,
			Limits: model.Limits(p.Limits), Transport: transport, NoStream: !p.Streaming(),
		}
		for header, value := range p.Headers {
			redact.Add(value.Reveal())
			m.Header[header] = value.Reveal()
		}
		for _, one := range p.Models {
			m.Models = append(m.Models, model.Model{
				Name: one.Name, ContextWindow: one.ContextWindow, InputPrice: one.InputPrice, OutputPrice: one.OutputPrice,
			})
		}
		providers[name] = m
	}
	return providers, nil
}

func modelTransport(p config.Provider) (attempt.Options, error) {
	var o attempt.Options
	if p.Proxy != "" {
		u, err := url.Parse(p.Proxy)
		if err != nil {
			return o, fmt.Errorf("the proxy is not a URL")
		}
		o.Proxy = http.ProxyURL(u)
	}
	if p.CAFile != "" {
		pem, err := os.ReadFile(p.CAFile)
		if err != nil {
			return o, fmt.Errorf("read ca_file: %w", err)
		}
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(pem) {
			return o, fmt.Errorf("ca_file %s holds no certificate", p.CAFile)
		}
		o.RootCAs = pool
	}
	return o, nil
}

func modelAgents(c *config.Config) map[string]model.Agent {
	agents := map[string]model.Agent{}
	for name, a := range c.Agents {
		agents[name] = model.Agent{
			Model: a.Model, Fallbacks: a.Fallbacks, System: a.System, MaxOutputTokens: int64(a.MaxOutputTokens),
			Temperature: a.Temperature, ReasoningEffort: a.ReasoningEffort, Policy: a.Policy, MaxRetries: a.MaxRetries,
			Deadline: a.Deadline, SilenceToken: a.SilenceToken,
		}
	}
	return agents
}

// secrets resolves auth profiles anew for each attempt, so that a rotated
// credential is picked up.
func secrets(c *config.Config) func(context.Context, string) (string, error) {
	return func(ctx context.Context, name string) (string, error) {
		p, ok := c.AuthProfiles[name]
		if !ok {
			return "", fmt.Errorf("there is no auth profile %q", name)
		}
		secret, err := p.Resolve(ctx)
		if err == nil {
			redact.Add(secret)
		}
		return secret, err
	}
}
