package policies

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"
)

// TestChannelVectors runs the shared vectors of the channel, Git and delivery
// areas (P2, P3, C2, G1–G4, D10, D12). What is left out is named in
// EXCEPTIONS.md, or says nothing about the outside.
func TestChannelVectors(t *testing.T) {
	t.Parallel()
	for _, area := range []channelVectorArea{
		{"retry_core", 18, map[string]string{
			"retry-after-jitter-5":            "it shortens a floor (P2)",
			"supervisor-sequence":             "the shape of another API",
			"numeric-overload-infinite-delay": "the shape of another API",
		}, checkRetryCore},
		{"channel_retry", 9, map[string]string{
			"econnreset-predicate-false-nonstrict": "ours decides by operation (C2)",
			"retry-after-capped":                   "it shortens a floor (P2)",
		}, checkChannelRetry},
		{"channel_retry_after_header", 7, nil, checkChannelRetryAfterHeader},
		{"discord_nonidempotent", 10, nil, checkDiscordNonidempotent},
		{"discord_rest", 12, nil, checkDiscordREST},
		{"discord_runner", 3, map[string]string{
			"gateway-down-extends":       "extra attempts after a gateway loss are not taken over",
			"gateway-down-observed-once": "the same",
			"gateway-down-attempts-1":    "the same",
		}, checkDiscordRunner},
		{"discord_transient", 25, nil, checkDiscordTransient},
		{"discord_delete", 1, nil, checkDiscordDelete},
		{"discord_error_body", 1, nil, checkDiscordErrorBody},
		{"discord_gateway_reconnect", 4, nil, checkDiscordGateway},
		{"telegram_client_rejection", 2, nil, checkTelegramRejection},
		{"telegram_poll_origin", 1, nil, checkTelegramPollOrigin},
		{"telegram_rate_limit", 2, nil, checkTelegramRateLimit},
		{"telegram_recoverable", 17, map[string]string{
			"network-request-after-attempts-send": "rows with context send bind nothing",
		}, checkTelegramRecoverable},
		{"telegram_safe_to_retry_send", 11, nil, checkTelegramSafeSend},
		{"telegram_send", 2, nil, checkTelegramSend},
		{"git_operation", 5, nil, checkGit},
		{"git_runner", 12, map[string]string{
			"authority-revoked":  "checked in workflows (G5)",
			"credential-rotated": "checked in workflows (G5)",
		}, checkGit},
		{"git_transient", 30, nil, checkGitTransient},
		{"delivery_backoff", 4, nil, checkDeliveryBackoff},
		{"delivery_not_sent_proof", 13, nil, checkDeliveryProof},
		{"delivery_permanent", 8, nil, checkDeliveryPermanent},
		{"delivery_recovery", 3, workflowDeliveryVectors(), checkDeliveryRecovery},
	} {
		area.run(t)
	}
}

// workflowDeliveryVectors are the rows of delivery_recovery that bind the
// delivery workflow, not a pure verdict.
func workflowDeliveryVectors() map[string]string {
	out := map[string]string{
		"max-retry-ambiguous-older": "an earlier generation (D11)",
		"capability-undeclared":     "an earlier generation (D11)",
	}
	for _, id := range []string{
		"crash-two-entries", "pacing", "budget-0", "generic-failure", "unknown-no-adapter", "started-not-sent",
		"commit-hook-after-ack", "hook-failure-no-restore", "marker-failure", "marker-and-ack-fail",
		"group-concurrency", "wake-after-commit",
	} {
		out[id] = "binds the delivery workflow"
	}
	return out
}

func checkRetryCore(t *testing.T, v channelVector) {
	e := Envelope{
		Attempts: int(v.number("attempts")), Min: vectorMillis(v.Input["minDelayMs"]),
		Max: vectorMillis(v.Input["maxDelayMs"]), Jitter: v.number("jitter"),
	}
	n, random := int(v.number("attempt")), v.number("random")
	switch {
	case v.text("fn") == "computeBackoffSchedule":
		for _, value := range v.Input["schedule"].([]any) {
			e.Schedule = append(e.Schedule, vectorMillis(value))
		}
		wantDelayMillis(t, e.Delay(n, Floor{}, 0), v.Expect["value"])
	case v.text("fn") == "computeBackoff":
		policy := v.Input["policy"].(map[string]any)
		e = Envelope{Min: vectorMillis(policy["initialMs"]), Max: vectorMillis(policy["maxMs"]), Jitter: vectorNumber(policy["jitter"])}
		wantDelayMillis(t, e.Delay(n, Floor{}, 0), v.Expect["delayMs"])
	case v.text("fn") == "RetrySupervisor":
		wantDelayMillis(t, Envelope{Min: 25 * time.Millisecond}.Delay(1, Floor{}, 0), v.Expect["nextDelayMs"])
	case v.ID == "delay-fn-list":
		for _, value := range v.Input["delayMs"].([]any) {
			e.Schedule = append(e.Schedule, vectorMillis(value))
		}
		for i, want := range v.Expect["sleepsMs"].([]any) {
			wantDelayMillis(t, e.Delay(i+1, Floor{}, 0), want)
		}
		if e.Allows(4) || !e.Allows(3) {
			t.Error("want 3 attempts")
		}
	case v.Input["retryAfterMs"] != nil:
		floor := Floor{Wait: vectorMillis(v.Input["retryAfterMs"]), Source: FloorRetryAfter}
		wantDelayMillis(t, e.Delay(max(n, 1), floor, random), v.Expect["delayMs"])
	case v.Input["waitMs"] != nil:
		want := v.Expect["sleepCallsMs"].([]any)[0]
		wantDelayMillis(t, EnvelopeTelegramFlood.Delay(1, Floor{Wait: vectorMillis(v.Input["waitMs"]), Source: FloorBody}, 0), want)
	case v.text("jitter") == "full":
		floor := Floor{Wait: vectorMillis(v.Input["delayMs"]), Source: FloorRetryAfter}
		wantDelayMillis(t, Envelope{Jitter: 1}.Delay(1, floor, random), v.Expect["delayMs"])
	case v.Input["failedAttempt"] != nil:
		n := int(v.number("failedAttempt"))
		wantDelayMillis(t, e.Delay(n, Floor{}, 0), v.Expect["minMs"])
		wantDelayMillis(t, e.Delay(n, Floor{}, 0.5), v.Expect["nominalMs"])
		wantDelayMillis(t, e.Delay(n, Floor{}, 1), v.Expect["maxMs"])
	case v.ID == "attempts-floor":
		if got := channelVectorCalls(Verdict{RetrySame: true}, e); got != 1 {
			t.Errorf("calls = %d, want 1", got)
		}
	default:
		t.Fatalf("unknown shape: %+v", v.Input)
	}
}

func wantDelayMillis(t *testing.T, got time.Duration, want any) {
	t.Helper()
	if got != vectorMillis(want) {
		t.Errorf("delay %v, want %v ms", got, want)
	}
}

func checkChannelRetry(t *testing.T, v channelVector) {
	if v.Input["retryAfterAt"] != nil {
		checkRetryAfterLocation(t, v)
		return
	}
	op := OpEdit
	if v.Input["strict"] == true {
		op = OpSend // what is proved not sent, and nothing else
	}
	f := channelVectorFault(SurfaceTelegram, op, v.Input["error"])
	verdict := JudgeTelegram(&f)
	if calls := v.Expect["calls"]; calls != nil {
		e := EnvelopeChannel
		e.Attempts = int(v.number("attempts"))
		if got := channelVectorCalls(verdict, e); got != int(vectorNumber(calls)) {
			t.Errorf("%d calls, want %v (%+v)", got, calls, verdict)
		}
		return
	}
	wantVerdictRetry(t, verdict, true)
	e := Envelope{Attempts: 3, Min: vectorMillis(v.Input["minDelayMs"]), Max: vectorMillis(v.Input["maxDelayMs"]), Jitter: v.number("jitter")}
	wantDelayMillis(t, e.Delay(1, verdict.Floor, 0), v.Expect["delayMs"])
}

func checkRetryAfterLocation(t *testing.T, v channelVector) {
	parameters := fmt.Sprintf(`{"parameters":{"retry_after":%v}}`, v.Input["seconds"])
	body := parameters
	switch v.text("retryAfterAt") {
	case "response.parameters.retry_after":
		body = `{"response":` + parameters + `}`
	case "error.parameters.retry_after":
		body = `{"error":` + parameters + `}`
	}
	wantDelayMillis(t, ChannelFloor(&Fault{Surface: SurfaceTelegram, Body: []byte(body)}).Wait, v.Expect["retryAfterMs"])
}

func checkChannelRetryAfterHeader(t *testing.T, v channelVector) {
	now, err := time.Parse(time.RFC3339, v.text("now"))
	if err != nil {
		t.Fatal(err)
	}
	f := Fault{Surface: SurfaceTelegram, Now: now, Header: http.Header{}}
	if header, ok := v.Input["header"].(string); ok {
		f.Header.Set("Retry-After", header)
	}
	floor := ChannelFloor(&f)
	if want := v.Expect["seconds"]; want == nil && floor.Asked() || want != nil && (!floor.Asked() || floor.Wait.Seconds() != want) {
		t.Errorf("floor %+v, want %v s", floor, want)
	}
}

func checkDiscordNonidempotent(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceDiscord, OpWebhook, v.Input["error"])
	wantVerdictRetry(t, JudgeDiscord(&f), v.Expect["retryable"] == true)
}

func checkDiscordTransient(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceDiscord, OpEdit, v.Input["error"])
	wantVerdictRetry(t, JudgeDiscord(&f), v.Expect["retryable"] == true)
}

func checkDiscordREST(t *testing.T, v channelVector) {
	if want := v.Expect["limitBytes"]; want != nil {
		if MaxAnswer != int(vectorNumber(want)) {
			t.Errorf("%d bytes of an answer are read, want %v", MaxAnswer, want)
		}
		return
	}
	f := Fault{Surface: SurfaceDiscord, Operation: OpWrite, Status: int(v.number("status")), Header: http.Header{}}
	if body := v.Input["body"]; body != nil {
		f.Body, _ = json.Marshal(body)
	} else if v.Input["bodyKind"] != nil {
		f.Body = []byte("<html><title>error code: 1015</title></html>")
	}
	if headers, ok := v.Input["headers"].(map[string]any); ok {
		for key, value := range headers {
			f.Header.Set(key, value.(string))
		}
	}
	verdict := JudgeDiscord(&f)
	if want := v.Expect["retryAfterSeconds"]; want != nil && math.Abs(verdict.Floor.Wait.Seconds()-vectorNumber(want)) > 1e-9 {
		t.Errorf("floor %v, want %v s", verdict.Floor.Wait, want)
	}
	if want := v.Expect["calls"]; want != nil {
		e := EnvelopeDiscordREST
		e.Attempts = int(v.number("attempts"))
		if got := channelVectorCalls(verdict, e); got != int(vectorNumber(want)) {
			t.Errorf("%d calls, want %v (%+v)", got, want, verdict)
		}
	}
}

func checkDiscordRunner(t *testing.T, v channelVector) {
	op := OpWebhook
	if v.Input["idempotent"] == true {
		op = OpEdit
	}
	calls := 1
	for _, name := range v.Input["errors"].([]any) {
		f := channelVectorFault(SurfaceDiscord, op, map[string]any{"code": name, "message": name})
		if !JudgeDiscord(&f).RetrySame || calls == int(v.number("attempts")) {
			break
		}
		calls++
	}
	if want := int(vectorNumber(v.Expect["calls"])); calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
}

func checkDiscordDelete(t *testing.T, v channelVector) {
	lost := v.Input["attempt2"] != nil
	f := Fault{Surface: SurfaceDiscord, Operation: OpDelete, Status: 404, Message: "Unknown Message", LostEarlier: lost}
	verdict := JudgeDiscord(&f)
	if want := v.Expect["outcome"] != "error"; verdict.Success != want || verdict.RetrySame {
		t.Errorf("verdict %+v, want success %v", verdict, want)
	}
}

func checkDiscordErrorBody(t *testing.T, v channelVector) {
	f := Fault{Surface: SurfaceDiscord, Operation: OpEdit, Status: int(v.number("status"))}
	wantVerdictRetry(t, JudgeDiscord(&f), v.Expect["retryable"] == true)
}

func checkDiscordGateway(t *testing.T, v channelVector) {
	n := int(v.number("attempt"))
	if want := v.Expect["delayMs"]; want != nil {
		for _, random := range []float64{0, 0.5, 1} {
			wantDelayMillis(t, EnvelopeDiscordGateway.Delay(n, Floor{}, random), want)
		}
	}
	if want := v.Expect["allowed"]; want != nil && EnvelopeDiscordGateway.Allows(n) != want {
		t.Errorf("Allows(%d) = %v", n, !want.(bool))
	}
}

func checkTelegramRejection(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceTelegram, OpSend, v.Input["error"])
	verdict := JudgeTelegram(&f)
	if got := verdict.Permanent && verdict.Effect == EffectNotSent; got != v.Expect["clientRejection"] {
		t.Errorf("verdict %+v, want rejection %v", verdict, v.Expect["clientRejection"])
	}
}

func checkTelegramPollOrigin(t *testing.T, v channelVector) {
	op := OpRead
	if v.text("taggedMethod") == "getUpdates" {
		op = OpPoll
	}
	f := channelVectorFault(SurfaceTelegram, op, v.Input["error"])
	verdict := JudgeTelegram(&f)
	wantVerdictRetry(t, verdict, v.Expect["recoverable"] == true)
	if got := op == OpPoll && verdict.RetrySame; got != v.Expect["pollingError"] {
		t.Errorf("polling error %v, want %v", got, v.Expect["pollingError"])
	}
}

func checkTelegramRateLimit(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceTelegram, OpSend, v.Input["error"])
	if got := JudgeTelegram(&f).Reason == ReasonRateLimit; got != v.Expect["rateLimit"] {
		t.Errorf("rate limit %v, want %v", got, v.Expect["rateLimit"])
	}
}

func checkTelegramRecoverable(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceTelegram, OpEdit, v.Input["error"])
	if v.text("context") == "polling" {
		f.Operation = OpPoll
	}
	if v.Input["allowMessageMatch"] == false {
		f.Message = ""
	}
	wantVerdictRetry(t, JudgeTelegram(&f), v.Expect["recoverable"] == true)
}

func checkTelegramSafeSend(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceTelegram, OpSend, v.Input["error"])
	verdict := JudgeTelegram(&f)
	wantVerdictRetry(t, verdict, v.Expect["safe"] == true)
	if (verdict.Effect == EffectNotSent) != (v.Expect["safe"] == true) {
		t.Errorf("effect %s", verdict.Effect)
	}
}

func checkTelegramSend(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceTelegram, OpSend, v.Input["error"])
	verdict := JudgeTelegram(&f)
	if want := v.Expect["calls"]; want != nil && channelVectorCalls(verdict, EnvelopeChannel) != int(vectorNumber(want)) {
		t.Errorf("verdict %+v, want %v calls", verdict, want)
	}
	if v.Expect["outcome"] == "ambiguous" && verdict.Effect != EffectUnknown {
		t.Errorf("effect %s, want unknown", verdict.Effect)
	}
	if want := v.Expect["delayMs"]; want != nil {
		wantDelayMillis(t, EnvelopeTelegramFlood.Delay(1, verdict.Floor, v.number("jitter")), want)
	}
}

func checkGit(t *testing.T, v channelVector) {
	f := channelVectorGitFault(v)
	verdict := JudgeGit(&f)
	if want, ok := v.Expect["retry"].(bool); ok {
		limit := DefaultGitTimeout
		if v.Input["timeoutMs"] != nil {
			limit = vectorMillis(v.Input["timeoutMs"])
		}
		left, ok := GitRetryLeft(limit, 0)
		if got := verdict.RetrySame && ok; got != want {
			t.Errorf("retry %v, want %v (%+v)", got, want, verdict)
		}
		if second := v.Expect["secondTimeoutMs"]; second != nil {
			wantDelayMillis(t, left, second)
		}
	}
	if want := v.Expect["delayMs"]; want != nil {
		wantDelayMillis(t, EnvelopeGitRead.Delay(1, verdict.Floor, 0.9), want)
	}
	if want := v.Expect["runs"]; want != nil && channelVectorCalls(verdict, EnvelopeGitRead) != int(vectorNumber(want)) {
		t.Errorf("verdict %+v, want %v runs", verdict, want)
	}
}

func channelVectorGitFault(v channelVector) Fault {
	f := Fault{Surface: SurfaceGit, Stderr: v.text("stderr"), Termination: v.text("termination")}
	if f.Termination == "outputLimit" {
		f.Termination = "output_limit"
	}
	if argv, ok := v.Input["argv"].([]any); ok {
		for _, arg := range argv {
			f.Argv = append(f.Argv, arg.(string))
		}
	} else {
		f.Operation = OpFetch
	}
	if v.Input["exitCode"] != nil {
		code := int(v.number("exitCode"))
		f.ExitCode = &code
	}
	return f
}

func checkGitTransient(t *testing.T, v channelVector) {
	f := channelVectorGitFault(v)
	verdict := JudgeGit(&f)
	wantVerdictRetry(t, verdict, v.Expect["transient"] == true)
	if verdict.Permanent == verdict.RetrySame {
		t.Errorf("verdict %+v", verdict)
	}
}

func checkDeliveryBackoff(t *testing.T, v channelVector) {
	wantDelayMillis(t, EnvelopeDelivery.Delay(int(v.number("retryCount")), Floor{}, 0.7), v.Expect["backoffMs"])
}

func checkDeliveryProof(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceDelivery, "", v.Input)
	if list, ok := v.Input["aggregate"].([]any); ok {
		f = channelVectorFault(SurfaceDelivery, "", map[string]any{"errors": list})
	}
	if got := JudgeDelivery(&f).Effect == EffectNotSent; got != v.Expect["provenNotSent"] {
		t.Errorf("proved %v, want %v", got, v.Expect["provenNotSent"])
	}
}

func checkDeliveryPermanent(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceDelivery, "", v.Input)
	if got := JudgeDelivery(&f).Permanent; got != v.Expect["permanent"] {
		t.Errorf("permanent %v, want %v", got, v.Expect["permanent"])
	}
}

func checkDeliveryRecovery(t *testing.T, v channelVector) {
	f := channelVectorFault(SurfaceDelivery, "", map[string]any{"message": v.Input["error"], "errors": v.Input["errors"]})
	verdict := JudgeDelivery(&f)
	switch v.Expect["state"] {
	case nil: // the evidence is cleared
		if verdict.Effect != EffectNotSent {
			t.Errorf("verdict %+v, want not_sent", verdict)
		}
	case "send_attempt_started": // the evidence stays
		if verdict.Effect != EffectUnknown {
			t.Errorf("verdict %+v, want unknown", verdict)
		}
	case "failed":
		if !verdict.Permanent {
			t.Errorf("verdict %+v, want permanent", verdict)
		}
	}
}
