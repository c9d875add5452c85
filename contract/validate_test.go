package contract_test

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// C1, I1: what a key may be: it is part of an id and travels in a header.
func TestValidateKey(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		"": true, "build-77": true, "a/b:c@d": true, strings.Repeat("k", contract.MaxKey): true,
		" ": false, "a b": false, "straße": false, "a\nb": false, "\x7f": false, strings.Repeat("k", contract.MaxKey+1): false,
	} {
		if err := contract.ValidateKey(key); (err == nil) != ok {
			t.Errorf("%.20q: %v, want ok %v", key, err, ok)
		}
	}
}

// C1: a send that cannot be made is refused with a reason, before anything is
// started under its key.
func TestSendInputValidate(t *testing.T) {
	t.Parallel()
	good := contract.SendInput{Channel: "telegram", To: "1", Text: "hello"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*contract.SendInput){
		"no destination":    func(in *contract.SendInput) { in.To = "" },
		"no text":           func(in *contract.SendInput) { in.Text = " \n\t" },
		"not valid UTF-8":   func(in *contract.SendInput) { in.Text = "a\xffb" },
		"without NUL":       func(in *contract.SendInput) { in.Text = "a\x00b" },
		"on_unknown":        func(in *contract.SendInput) { in.OnUnknown = "guess" },
		"format":            func(in *contract.SendInput) { in.Format = "rtf" },
		"no channel":        func(in *contract.SendInput) { in.Channel = "fax" },
		"no HTML":           func(in *contract.SendInput) { in.Channel, in.Format = "discord", contract.FormatHTML },
		"positive duration": func(in *contract.SendInput) { in.TTL = "-5m" },
		"\"5\"":             func(in *contract.SendInput) { in.TTL = "5" },
	} {
		in := good
		change(&in)
		if err := in.Validate(); err == nil || err.Reason != "format" || !strings.Contains(err.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// I3: the same of a run.
func TestRunInputValidate(t *testing.T) {
	t.Parallel()
	minus := -1
	for want, in := range map[string]contract.RunInput{
		"no prompt":         {Prompt: " "},
		"not valid UTF-8":   {Prompt: "\xff"},
		"max_retries":       {Prompt: "x", MaxRetries: &minus},
		"positive duration": {Prompt: "x", Deadline: "0s"},
	} {
		if err := in.Validate(); err == nil || !strings.Contains(err.Message, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (contract.RunInput{Prompt: "x", Deadline: "1m"}).Validate(); err != nil {
		t.Error(err)
	}
}
