package simulator_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
)

// send is a client that gives up after one request.
func send(s *discord.Server, text string) string {
	body := fmt.Sprintf(`{"content":%q,"nonce":%q,"enforce_nonce":true}`, text, text)
	req, err := http.NewRequest("POST", s.APIURL()+"/channels/1/messages", strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bot token")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return "no answer"
	}
	resp.Body.Close()
	return resp.Status
}

// The first create is served, the second throttled twice, the third written and
// its answer lost.
func Example() {
	s, err := discord.Start(discord.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	s.Script(
		simulator.Pass().On(discord.OpCreateMessage),
		discord.RateLimited(0.7, false).On(discord.OpCreateMessage).Times(2),
		simulator.Pass().On(discord.OpCreateMessage),
		simulator.EffectThenReset().On(discord.OpCreateMessage),
	)
	for _, text := range []string{"one", "two", "two", "two", "three", "three"} {
		fmt.Println(text, send(s, text))
	}
	fmt.Println(len(s.Ledger().Requests(discord.OpCreateMessage)), "requests")
	for _, e := range s.Ledger().Effects(discord.EffectMessage) {
		fmt.Println(e.Content, "by request", e.Request)
	}
	// Output:
	// one 200 OK
	// two 429 Too Many Requests
	// two 429 Too Many Requests
	// two 200 OK
	// three no answer
	// three 200 OK
	// 6 requests
	// one by request 1
	// two by request 4
	// three by request 5
}

// A request is held after its effect until the test lets it go; a test that kills
// the sender would do so in the place of the release.
func ExampleGate() {
	s, err := discord.Start(discord.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	gate := s.Gate("written")
	s.Script(simulator.HoldAfter(gate.Name()).On(discord.OpCreateMessage))
	answer := make(chan string)
	go func() { answer <- send(s, "one") }()
	n, err := gate.WaitHeld(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("request", n, "is held;", len(s.Ledger().Effects("")), "effect")
	gate.Release()
	fmt.Println(<-answer)
	// Output:
	// request 1 is held; 1 effect
	// 200 OK
}
