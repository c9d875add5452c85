package client_test

import (
	"context"
	"fmt"
	"log"

	temporal "go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// A gateway derives the key from the message it answers, so that asking again
// after a crash is asking for the same send.
func ExampleClient_Send() {
	ctx := context.Background()
	t, err := temporal.Dial(temporal.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	h, err := client.New(t).Send(ctx, "reply-8841", contract.SendInput{
		Channel: "discord", Account: "main", To: "1234", Text: "The build is green.", Format: contract.FormatMarkdown,
	})
	if err != nil {
		log.Fatal(err)
	}
	result, err := h.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range result.Receipts {
		fmt.Println(result.Outcome, r.Part, r.MessageID)
	}
}

// A push that has not landed may be made again, as a new push with the same
// lease: the remote ref is still what it was then, or the new push is a conflict.
func ExampleClient_GitPush() {
	ctx := context.Background()
	t, err := temporal.Dial(temporal.Options{HostPort: "127.0.0.1:7233"})
	if err != nil {
		log.Fatal(err)
	}
	defer t.Close()
	c := client.New(t)
	in := contract.GitPushInput{Dir: "/srv/checkouts/handbook", Host: "build-1", Auth: "github"}
	for _, key := range []string{"edit-77", "edit-77-again"} {
		h, err := c.GitPush(ctx, key, in)
		if err != nil {
			log.Fatal(err)
		}
		result, err := h.Get(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(result.Outcome)
		if result.Outcome != contract.OutcomeNotLanded {
			break
		}
		in.Expect = result.Push.Lease()
	}
}
