package git

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/measure"
	"github.com/holdfast-dev/holdfast/policies"
)

// benchLimit is the time that a measured operation has.
const benchLimit = 10 * time.Minute

// benchRole is the argument that makes the test binary a worker that does one
// operation. Its order comes by standard input; it says "ready" and waits for a
// line before it begins.
const benchRole = "bench-worker"

// benchOrder is the operation.
type benchOrder struct {
	Engine    string
	Operation policies.Operation
	Request   contract.GitRequest
	// WarmUp is the address of a small repository. A worker that has just begun
	// is not what is measured.
	WarmUp string
}

// benchDone is what came of it.
type benchDone struct {
	Cost    measure.Cost
	Outcome contract.Outcome
	Failure contract.Failure
}

// A role by argument is not handed down to the processes that the worker starts.
func init() {
	if len(os.Args) != 2 || os.Args[1] != benchRole {
		return
	}
	if err := benchWorker(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func benchWorker() error {
	in := bufio.NewReader(os.Stdin)
	var order benchOrder
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &order); err != nil {
		return err
	}
	a, err := New(Config{Engine: order.Engine})
	if err != nil {
		return err
	}
	warmUp := contract.GitRequest{URL: order.WarmUp, LimitMS: benchLimit.Milliseconds()}
	if done := execute(a, policies.OpLsRemote, warmUp); done.Outcome != contract.OutcomeListed {
		return errors.New(done.Failure.Message)
	}
	if err := measure.ForgetPeak(); err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := in.ReadBytes('\n'); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(execute(a, order.Operation, order.Request))
}

// execute makes one attempt of an activity. What the SDK does around it does not
// count.
func execute(a *Activities, op policies.Operation, request contract.GitRequest) (done benchDone) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(benchLimit)
	env.RegisterActivityWithOptions(func(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
		stop := measure.Self()
		defer func() { done.Cost = stop() }()
		switch op {
		case policies.OpClone:
			return a.Clone(ctx, in)
		case policies.OpFetch:
			return a.Fetch(ctx, in)
		}
		return a.LsRemote(ctx, in)
	}, activity.RegisterOptions{Name: string(op)})
	var result contract.GitResult
	out, err := env.ExecuteActivity(string(op), request)
	if err == nil {
		err = out.Get(&result)
	}
	done.Outcome = result.Outcome
	if err != nil {
		done.Outcome, done.Failure = contract.OutcomeFailed, failure.From(err)
	}
	return done
}

// benchProcess is a worker in a process of its own.
type benchProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startBenchWorker starts a worker and waits until it is ready.
func startBenchWorker(b *testing.B, order benchOrder) *benchProcess {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	p := &benchProcess{cmd: exec.Command(exe, benchRole)}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	if err := json.NewEncoder(p.in).Encode(order); err != nil {
		b.Fatal(err)
	}
	if line, err := p.out.ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatalf("the worker said %q: %v", line, err)
	}
	return p
}

// do has the operation done.
func (p *benchProcess) do(b *testing.B) (done benchDone) {
	b.Helper()
	if _, err := fmt.Fprintln(p.in, "go"); err != nil {
		b.Fatal(err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(line, &done); err != nil {
		b.Fatal(err)
	}
	return done
}

func (p *benchProcess) end(b *testing.B) {
	b.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}
