package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// DefaultDeadline bounds a run that names no deadline.
const DefaultDeadline = 30 * time.Minute

// Plan takes a run's snapshot of the configuration: the candidates in the order
// they may be tried, the policy, and what the agent says. It touches nothing
// outside. Its error is a [contract.Failure] of reason format that says what to
// change.
func (a *Activities) Plan(_ context.Context, in contract.RunInput) (transcript.Plan, error) {
	plan, err := a.plan(in)
	if err != nil {
		return transcript.Plan{}, failure.New(contract.Failure{
			Surface: string(policies.SurfaceModel), Reason: string(policies.ReasonFormat), Rule: "I3/plan",
			Permanent: true, Effect: string(policies.EffectNone), Message: err.Error(),
		}, failure.Options{})
	}
	return plan, nil
}

func (a *Activities) plan(in contract.RunInput) (transcript.Plan, error) {
	agent, err := a.agent(in)
	if err != nil {
		return transcript.Plan{}, err
	}
	if strings.TrimSpace(in.Prompt) == "" {
		return transcript.Plan{}, fmt.Errorf("the run has no prompt (--prompt)")
	}
	plan := transcript.Plan{
		System: agent.System, MaxOutputTokens: agent.MaxOutputTokens, Temperature: agent.Temperature,
		ReasoningEffort: agent.ReasoningEffort, MaxRetries: agent.MaxRetries, SilenceToken: agent.SilenceToken,
		Deadline: agent.Deadline,
	}
	if plan.Deadline <= 0 {
		plan.Deadline = DefaultDeadline
	}
	if in.MaxRetries != nil {
		plan.MaxRetries = in.MaxRetries
	}
	if plan.MaxRetries != nil && *plan.MaxRetries < 0 {
		return transcript.Plan{}, fmt.Errorf("max_retries is %d; it cannot be negative", *plan.MaxRetries)
	}
	if in.Deadline != "" {
		d, err := time.ParseDuration(in.Deadline)
		if err != nil || d <= 0 {
			return transcript.Plan{}, fmt.Errorf("the deadline %q is not a positive duration such as 10m", in.Deadline)
		}
		plan.Deadline = d
	}
	name := agent.Policy
	if in.Policy != "" {
		name = in.Policy
	}
	if plan.Policy, err = a.config.Policy(name); err != nil {
		return transcript.Plan{}, err
	}
	plan.Targets, err = a.targets(agent)
	return plan, err
}

// agent finds the run's agent. Without any agent configured, a run that names a
// model is one of its own.
func (a *Activities) agent(in contract.RunInput) (Agent, error) {
	var agent Agent
	known := slices.Sorted(maps.Keys(a.config.Agents))
	switch {
	case in.Agent != "":
		found, ok := a.config.Agents[in.Agent]
		if !ok {
			return agent, fmt.Errorf("there is no agent %q (known: %s); see agents", in.Agent, strings.Join(known, ", "))
		}
		agent = found
	case len(known) == 1:
		agent = a.config.Agents[known[0]]
	case len(known) > 1 && in.Model == "":
		if found, ok := a.config.Agents["main"]; ok {
			agent = found
			break
		}
		return agent, fmt.Errorf("several agents are configured; name one with --agent (known: %s)", strings.Join(known, ", "))
	}
	if in.Model != "" {
		agent.Model = in.Model
	}
	if agent.Model == "" {
		return agent, fmt.Errorf("no model to run; name one with --model provider/model, or configure an agent")
	}
	return agent, nil
}

// targets lists the candidates in configured order, the requested model first,
// each once and with every auth profile of its provider (M3.6).
func (a *Activities) targets(agent Agent) ([]transcript.Target, error) {
	var targets []transcript.Target
	names := append([]string{agent.Model}, agent.Fallbacks...)
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		more, err := a.expand(name)
		if err != nil {
			return nil, err
		}
		targets = append(targets, more...)
	}
	return targets, nil
}

func (a *Activities) find(name string) (provider string, model Model, err error) {
	provider, wanted, ok := strings.Cut(name, "/")
	if !ok || provider == "" || wanted == "" {
		return "", Model{}, fmt.Errorf("the model %q is not of the form provider/model", name)
	}
	p, ok := a.config.Providers[provider]
	if !ok {
		known := slices.Sorted(maps.Keys(a.config.Providers))
		return "", Model{}, fmt.Errorf("there is no provider %q (known: %s); see providers", provider, strings.Join(known, ", "))
	}
	for _, m := range p.Models {
		if m.Name == wanted {
			return provider, m, nil
		}
	}
	return provider, Model{Name: wanted}, nil
}

func (a *Activities) expand(name string) ([]transcript.Target, error) {
	provider, m, err := a.find(name)
	if err != nil {
		return nil, err
	}
	profiles := a.config.Providers[provider].AuthProfiles
	if len(profiles) == 0 {
		profiles = []string{""}
	}
	var targets []transcript.Target
	for _, profile := range profiles {
		targets = append(targets, transcript.Target{
			Candidate: contract.Candidate{Provider: provider, Model: m.Name, AuthProfile: profile},
			NoStream:  a.config.Providers[provider].NoStream, ContextWindow: m.ContextWindow, InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
		})
	}
	return targets, nil
}
