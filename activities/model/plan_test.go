package model_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

func planner(t *testing.T, agents map[string]model.Agent) *model.Activities {
	t.Helper()
	dialect := model.Unspoken{Dialect: "test"}
	return activities(t, model.Provider{Dialect: dialect, BaseURL: "http://127.0.0.1:1"}, func(c *model.Config) {
		c.Agents = agents
		c.Providers = map[string]model.Provider{
			"acme": {
				Dialect: dialect, BaseURL: "http://127.0.0.1:1", AuthProfiles: []string{"work", "home"},
				Models: []model.Model{{Name: "big", ContextWindow: 1000, InputPrice: 2, OutputPrice: 8}},
			},
			"local": {Dialect: dialect, BaseURL: "http://127.0.0.1:1", NoStream: true},
		}
		c.Policy = func(name string) (policies.Policy, error) {
			if name == "missing" {
				return policies.Policy{}, errors.New("there is no policy profile \"missing\"")
			}
			return policies.Policy{Name: "loaded " + name}, nil
		}
	})
}

func target(provider, name, profile string) transcript.Target {
	t := transcript.Target{Candidate: contract.Candidate{Provider: provider, Model: name, AuthProfile: profile}}
	if provider == "local" {
		t.NoStream = true
	}
	if name == "big" {
		t.ContextWindow, t.InputPrice, t.OutputPrice = 1000, 2, 8
	}
	return t
}

// M3.4, M3.6, M3.8: the candidates in order, each once, with every auth profile;
// what the run says goes before what the agent says.
func TestPlan(t *testing.T) {
	t.Parallel()
	warm, zero, five := 0.5, 0, 5
	agent := model.Agent{
		Model: "acme/big", Fallbacks: []string{"local/small", "acme/new/one", "acme/big"}, System: "Be kind.", MaxOutputTokens: 7,
		Temperature: &warm, ReasoningEffort: "low", Policy: "agent's", MaxRetries: &five, Deadline: time.Hour, SilenceToken: "(silence)",
	}
	a := planner(t, map[string]model.Agent{"main": agent, "bare": {Model: "local/small"}})
	all := []transcript.Target{
		target("acme", "big", "work"), target("acme", "big", "home"), target("local", "small", ""),
		target("acme", "new/one", "work"), target("acme", "new/one", "home"),
	}
	base := transcript.Plan{
		Targets: all, Policy: policies.Policy{Name: "loaded agent's"}, System: "Be kind.", MaxOutputTokens: 7, Temperature: &warm,
		ReasoningEffort: "low", MaxRetries: &five, Deadline: time.Hour, SilenceToken: "(silence)",
	}
	with := func(change func(*transcript.Plan)) transcript.Plan {
		p := base
		change(&p)
		return p
	}
	for name, tc := range map[string]struct {
		in   contract.RunInput
		want transcript.Plan
	}{
		"the agent's": {contract.RunInput{Agent: "main"}, base},
		"by default":  {contract.RunInput{}, base},
		"no retries":  {contract.RunInput{MaxRetries: &zero}, with(func(p *transcript.Plan) { p.MaxRetries = &zero })},
		"deadline":    {contract.RunInput{Deadline: "90s"}, with(func(p *transcript.Plan) { p.Deadline = 90 * time.Second })},
		"policy":      {contract.RunInput{Policy: "run's"}, with(func(p *transcript.Plan) { p.Policy.Name = "loaded run's" })},
		"another model": {contract.RunInput{Agent: "main", Model: "local/small"}, with(func(p *transcript.Plan) {
			p.Targets = []transcript.Target{all[2], all[3], all[4], all[0], all[1]}
		})},
		"no agent":   {contract.RunInput{Model: "acme/big"}, transcript.Plan{Targets: all[:2], Policy: policies.Policy{Name: "loaded "}, Deadline: model.DefaultDeadline}},
		"bare agent": {contract.RunInput{Agent: "bare"}, transcript.Plan{Targets: all[2:3], Policy: policies.Policy{Name: "loaded "}, Deadline: model.DefaultDeadline}},
	} {
		tc.in.Prompt = "hello"
		got, err := a.Plan(t.Context(), tc.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// I3: what is wrong with a run is said in words that name what to change, and
// is not retried.
func TestPlanErrors(t *testing.T) {
	t.Parallel()
	minus := -1
	two := map[string]model.Agent{"a": {Model: "acme/big"}, "b": {Model: "acme/big"}}
	for _, tc := range []struct {
		agents map[string]model.Agent
		in     contract.RunInput
		want   string
	}{
		{two, contract.RunInput{Prompt: "p"}, "several agents are configured; name one with --agent (known: a, b)"},
		{two, contract.RunInput{Prompt: "p", Agent: "c"}, `there is no agent "c" (known: a, b); see agents`},
		{two, contract.RunInput{Prompt: " \n", Agent: "a"}, "no prompt (--prompt)"},
		{two, contract.RunInput{Prompt: "p", Agent: "a", Deadline: "soon"}, `"soon" is not a positive duration such as 10m`},
		{two, contract.RunInput{Prompt: "p", Agent: "a", Deadline: "-1m"}, `"-1m" is not a positive duration`},
		{two, contract.RunInput{Prompt: "p", Agent: "a", Deadline: "0s"}, `"0s" is not a positive duration`},
		{two, contract.RunInput{Prompt: "p", Agent: "a", MaxRetries: &minus}, "max_retries is -1; it cannot be negative"},
		{two, contract.RunInput{Prompt: "p", Agent: "a", Policy: "missing"}, `no policy profile "missing"`},
		{two, contract.RunInput{Prompt: "p", Model: "big"}, `"big" is not of the form provider/model`},
		{two, contract.RunInput{Prompt: "p", Model: "acme/"}, `"acme/" is not of the form provider/model`},
		{two, contract.RunInput{Prompt: "p", Model: "/big"}, `"/big" is not of the form provider/model`},
		{two, contract.RunInput{Prompt: "p", Model: "other/big"}, `no provider "other" (known: acme, local); see providers`},
		{nil, contract.RunInput{Prompt: "p"}, "no model to run; name one with --model provider/model"},
		{map[string]model.Agent{"a": {Model: "acme/big", Fallbacks: []string{"nowhere"}}}, contract.RunInput{Prompt: "p"}, `"nowhere" is not of the form`},
	} {
		_, err := planner(t, tc.agents).Plan(t.Context(), tc.in)
		if err == nil {
			t.Errorf("%+v was planned, want %q", tc.in, tc.want)
			continue
		}
		f := failure.From(err)
		if f.Reason != "format" || !f.Permanent || !strings.Contains(f.Message, tc.want) || f.Rule != "I3/plan" {
			t.Errorf("%s: %s, want %q", fmt.Sprint(tc.in), f.Message, tc.want)
		}
	}
}
