package main

import (
	"context"
	"fmt"

	"belfry/pkg/app/command"
)

type mailCmd struct {
	Test mailTestCmd `cmd:"" help:"Send a mail, and print what the mail server replies."`
}

type mailTestCmd struct {
	configuration
	Address string `arg:"" help:"Address to which the mail is sent."`
	Mailer  string `help:"The mailer, instead of that of authentication.providers.email." placeholder:"NAME"`
	JSON    bool   `name:"json" help:"Print the result as JSON."`
}

// Run sends the mail.
func (c *mailTestCmd) Run(ctx context.Context, s streams) error {
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	tested, err := command.TestMail(ctx, loaded, command.MailTest{To: c.Address, Mailer: c.Mailer})
	if err != nil {
		return err
	}
	if c.JSON {
		return encoder(s.out).Encode(tested)
	}
	by := "by this command, since no belfry serves the data folder here"
	if tested.Served {
		by = "by the belfry that serves, with the configuration that it has read"
	}
	_, err = fmt.Fprintf(s.out, "%s\n(%s)\n", tested.Done(), by)
	return err
}
