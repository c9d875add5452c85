// Package setup makes a Temporal namespace ready for Holdfast, and checks that
// it is: the search attributes exist, and closed work is kept for as long as a
// repeated key is promised to be recognised.
package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-dev/holdfast/contract"
)

// Retention is how long a namespace that Apply makes keeps closed work, and
// with it recognises a repeated key.
const Retention = 30 * 24 * time.Hour

// LeastRetention is what Check accepts: a send's default time to live and the
// seven days a review stays open.
const LeastRetention = 8 * 24 * time.Hour

// MissingError says what a namespace lacks and which command mends it.
type MissingError struct {
	Namespace  string
	Absent     bool // the namespace itself does not exist
	Attributes []string
	Retention  time.Duration // the namespace's, if it is too short; else 0
}

func (e *MissingError) Error() string {
	var lacks []string
	switch {
	case e.Absent:
		lacks = append(lacks, "does not exist")
	default:
		if len(e.Attributes) > 0 {
			lacks = append(lacks, "lacks the search attributes "+strings.Join(e.Attributes, ", "))
		}
		if e.Retention > 0 {
			lacks = append(lacks, fmt.Sprintf("keeps closed work for only %s, so that a repeated key would be taken for new work", e.Retention))
		}
	}
	return fmt.Sprintf("the namespace %q %s; mend it with: starter setup --namespace %s", e.Namespace, strings.Join(lacks, " and "), e.Namespace)
}

// Check reports a *MissingError when the namespace is not ready.
func Check(ctx context.Context, c client.Client, name string) error {
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if errors.As(err, new(*serviceerror.NamespaceNotFound)) {
		return &MissingError{Namespace: name, Absent: true}
	}
	if err != nil {
		return fmt.Errorf("describe the namespace %q: %w", name, err)
	}
	missing := &MissingError{Namespace: name}
	if missing.Attributes, err = absent(ctx, c, name); err != nil {
		return err
	}
	if keeps := d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); keeps < LeastRetention {
		missing.Retention = keeps
	}
	if len(missing.Attributes) > 0 || missing.Retention > 0 {
		return missing
	}
	return nil
}

// absent lists the search attributes that are not registered as keywords.
func absent(ctx context.Context, c client.Client, name string) ([]string, error) {
	list, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: name})
	if err != nil {
		return nil, fmt.Errorf("list the search attributes of %q: %w", name, err)
	}
	return slices.DeleteFunc(contract.SearchAttributes(), func(a string) bool {
		return list.GetCustomAttributes()[a] == enums.INDEXED_VALUE_TYPE_KEYWORD
	}), nil
}

// Apply makes the namespace ready; it may be run again and changes nothing that
// is right. It returns what it did, one sentence each.
func Apply(ctx context.Context, c client.Client, name string) (did []string, err error) {
	service := c.WorkflowService()
	d, err := service.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	switch {
	case errors.As(err, new(*serviceerror.NamespaceNotFound)):
		_, err = service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
			Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(Retention),
		})
		if err != nil {
			return did, fmt.Errorf("make the namespace %q: %w", name, err)
		}
		did = append(did, fmt.Sprintf("made the namespace %s, which keeps closed work for %s", name, Retention))
	case err != nil:
		return did, fmt.Errorf("describe the namespace %q: %w", name, err)
	case d.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() < LeastRetention:
		_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: name,
			Config:    &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(Retention)},
		})
		if err != nil {
			return did, fmt.Errorf("set the retention of %q: %w", name, err)
		}
		did = append(did, fmt.Sprintf("set the retention of %s to %s", name, Retention))
	}
	missing, err := absentSoon(ctx, c, name)
	if err != nil || len(missing) == 0 {
		return did, err
	}
	attributes := map[string]enums.IndexedValueType{}
	for _, a := range missing {
		attributes[a] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace: name, SearchAttributes: attributes,
	})
	if err != nil {
		return did, fmt.Errorf("add the search attributes to %q: %w", name, err)
	}
	return append(did, "added the search attributes "+strings.Join(missing, ", ")), usable(ctx, c, name)
}

// refreshed is how long the parts of a server may know a namespace by its past:
// twice the interval at which each reads the namespaces again.
const refreshed = 4 * time.Second

// usable waits until attributes that were just added can be used: first until a
// list knows them, then for the other parts of the server.
func usable(ctx context.Context, c client.Client, name string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	query := fmt.Sprintf("%s = 'setup'", contract.AttributeKind)
	known := time.Time{}
	for {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: query})
		switch {
		case err == nil && known.IsZero():
			known = time.Now()
		case err == nil && time.Since(known) > refreshed:
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the search attributes of %q are added, but not usable yet; run the command again in a minute: %w", name, ctx.Err())
		case <-tick.C:
		}
	}
}

// absentSoon is absent for a namespace that may have been made a moment ago: the
// server's own list of namespaces lags by some seconds.
func absentSoon(ctx context.Context, c client.Client, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		missing, err := absent(ctx, c, name)
		var notFound *serviceerror.NamespaceNotFound
		if err == nil || !errors.As(err, &notFound) {
			return missing, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-tick.C:
		}
	}
}
