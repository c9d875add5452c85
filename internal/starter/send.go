package starter

import (
	"context"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// SendCmd is "send".
type SendCmd struct {
	Channel   string `help:"${enum}." enum:"discord,telegram" required:"" placeholder:"CHANNEL"`
	Account   string `help:"Account of the configuration; the only one if left out." placeholder:"NAME"`
	To        string `help:"Destination: Discord channel id, Telegram chat id or @name." required:"" placeholder:"ID"`
	Text      string `help:"The text; - reads standard input." required:"" placeholder:"TEXT"`
	Format    string `help:"${enum}." enum:"plain,markdown,html" default:"plain"`
	ReplyTo   string `help:"Message id to answer." placeholder:"ID"`
	Thread    string `help:"Discord thread id or Telegram message_thread_id." placeholder:"ID"`
	TTL       string `name:"ttl" help:"Time to live; 24h if left out." placeholder:"DURATION"`
	OnUnknown string `help:"What to do when nobody can tell whether a part was sent: ${enum}." enum:"review,resend,drop" default:"review"`
}

// Run starts the send and says how it ended.
func (c *SendCmd) Run(s *session, ctx context.Context) error {
	text, err := s.text(c.Text)
	if err != nil {
		return err
	}
	if len(text) > maxInput {
		return usagef("the text is %d bytes long; at most %d can be sent at once", len(text), maxInput)
	}
	client, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	in := contract.SendInput{
		Channel: c.Channel, Account: c.Account, To: c.To, Text: text, Format: contract.Format(c.Format),
		ReplyTo: c.ReplyTo, Thread: c.Thread, TTL: c.TTL, OnUnknown: contract.OnUnknown(c.OnUnknown),
	}
	h, err := begin(ctx, s, func(ctx context.Context) (*holdfast.Handle[contract.SendResult], error) {
		return client.Send(ctx, s.key, in)
	})
	if err != nil {
		return err
	}
	f, err := follow(ctx, s, h)
	if err != nil {
		return err
	}
	return conclude(s, h, f, func(r contract.SendResult) contract.Outcome { return r.Outcome }, func(r contract.SendResult) {
		s.showSend(h.ID(), r)
	})
}

func (s *session) showSend(id string, r contract.SendResult) {
	if r.Outcome.ExitStatus() == contract.ExitOK {
		printf(s.Out, "%s %s\n", r.Outcome, id)
	} else {
		s.lament(id, r.Outcome, r.Error)
	}
	for _, receipt := range r.Receipts {
		plain := ""
		if receipt.Plain {
			plain = " (as plain text)"
		}
		printf(s.Out, "  part %d  message %s%s\n", receipt.Part, receipt.MessageID, plain)
	}
	if r.Outcome.ExitStatus() == contract.ExitOK && r.Error != nil {
		printf(s.Out, "  note: %s\n", r.Error.Message)
	}
	if r.Review != nil {
		s.showReview(*r.Review)
	}
}

func (s *session) showReview(r contract.Review) {
	for _, d := range r.Delivered {
		printf(s.Out, "  delivered, part %d (message %s):\n%s\n", d.Part, d.MessageID, indent(d.Text))
	}
	printf(s.Out, "  unknown, part %d:\n%s\n", r.Part, indent(r.Text))
	if r.Key != "" {
		printf(s.Out, "  look at the chat, then: starter review settle %s --receipt ID | retry %s | abandon %s\n", r.Key, r.Key, r.Key)
	}
}
