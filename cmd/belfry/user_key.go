package main

import (
	"context"
	"fmt"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

type userKeyCmd struct {
	Create userKeyCreateCmd `cmd:"" help:"Create an API key and print its token, which is shown once."`
	Revoke userKeyRevokeCmd `cmd:"" help:"Revoke an API key."`
}

type userKeyCreateCmd struct {
	oneUser
	Name    string  `arg:"" help:"What the key is for."`
	Expires *string `help:"When it expires: a time (RFC 3339), or after how long, 720h for instance. Default: never." placeholder:"TIME"`
	Rule    *string `help:"CEL over method and path of a request; others are refused." placeholder:"RULE"`
}

// Run prints the token alone on standard output, so that a script can keep it.
func (c *userKeyCreateCmd) Run(ctx context.Context, s streams) error {
	expires, err := expiry(c.Expires)
	if err != nil {
		return err
	}
	rule := ""
	if c.Rule != nil {
		// The variable of a script that is not set would make a key that may do everything.
		if rule = *c.Rule; rule == "" {
			return errs.New(errs.Invalid, "--rule: is empty; leave it out for a key that may do all that the user may")
		}
	}
	return c.manage(ctx, false, func(ask command.AskUsers) error {
		reply, err := ask(ctx, command.UserRequest{Act: command.CreateKey, User: c.User, Key: account.NewKey{Name: c.Name, Rule: rule, Expires: expires}})
		if err != nil {
			return err
		}
		if c.JSON {
			return encoder(s.out).Encode(struct {
				*account.KeyInfo
				Token string `json:"token"`
			}{reply.Key, reply.Token})
		}
		fmt.Fprintf(s.err, "%s: API key %s; its token, which is not shown again:\n", describeUser(reply.Users[0]), reply.Key.ID)
		_, err = fmt.Fprintln(s.out, reply.Token)
		return err
	})
}

// expiry reads when a key expires; the zero time for nil.
func expiry(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	if after, err := time.ParseDuration(*text); err == nil {
		return time.Now().Add(after), nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return at, errs.New(errs.Invalid, "--expires: expected a time such as 2030-01-02T15:04:05Z, or how long such as 720h")
	}
	return at, nil
}

type userKeyRevokeCmd struct {
	oneUser
	Key string `arg:"" name:"id" help:"Id of the key, as printed by show."`
}

// Run revokes an API key.
func (c *userKeyRevokeCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.RevokeKey, User: c.User, Revoked: c.Key}, "the API key is revoked")
	return err
}
