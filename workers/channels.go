package workers

import (
	"context"

	"github.com/holdfast-dev/holdfast/activities/discord"
	"github.com/holdfast-dev/holdfast/activities/telegram"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func discordActivities(o Options) (map[string]any, error) {
	accounts := map[string]discord.Account{}
	for name, a := range o.Config.Channels.Discord.Accounts {
		accounts[name] = discord.Account{Token: token(a.Token), APIURL: a.APIURL}
	}
	d, err := discord.New(discord.Config{Accounts: accounts})
	if err != nil {
		return nil, err
	}
	return map[string]any{
		contract.ActivityDiscordCreateMessage: d.CreateMessage,
		contract.ActivityDiscordListMessages:  d.ListMessages,
		contract.ActivityDiscordCurrentUser:   d.CurrentUser,
	}, nil
}

func telegramActivities(o Options) (map[string]any, error) {
	accounts := map[string]telegram.Account{}
	for name, a := range o.Config.Channels.Telegram.Accounts {
		accounts[name] = telegram.Account{Token: token(a.Token), APIURL: a.APIURL}
	}
	t, err := telegram.New(telegram.Config{Accounts: accounts})
	if err != nil {
		return nil, err
	}
	return map[string]any{contract.ActivityTelegramSendMessage: t.SendMessage}, nil
}

// token hands a secret of the configuration to an activity and makes it known
// to the scrubbing of logs and errors.
func token(s config.Secret) func(context.Context) (string, error) {
	redact.Add(s.Reveal())
	return func(context.Context) (string, error) { return s.Reveal(), nil }
}
