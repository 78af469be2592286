package main

import (
	"cmp"
	"context"
	"fmt"
	"text/tabwriter"

	"belfry/pkg/app/command"
)

type userSessionsCmd struct{ oneUser }

// Run prints a line for each session.
func (c *userSessionsCmd) Run(ctx context.Context, s streams) error {
	return c.manage(ctx, false, func(ask command.AskUsers) error {
		reply, err := ask(ctx, command.UserRequest{Act: command.ShowUser, User: c.User})
		if err != nil {
			return err
		}
		sessions := reply.Users[0].Sessions
		if c.JSON {
			e := encoder(s.out)
			for _, session := range sessions {
				if err := e.Encode(session); err != nil {
					return err
				}
			}
			return nil
		}
		t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ID\tTYPE\tLAST USED\tEXPIRES\tADDRESS\tPLACE\tDEVICE\tUSER AGENT")
		for _, i := range sessions {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%q\n", i.ID, i.Type, i.LastUsed, i.Expires, cmp.Or(i.Address, "-"), cmp.Or(i.Place.String(), "-"), cmp.Or(i.Device, "-"), i.UserAgent)
		}
		return t.Flush()
	})
}

type userEndSessionsCmd struct {
	oneUser
	Session string `arg:"" optional:"" name:"id" help:"Id of the only session to end. Default: all, and all API keys."`
}

// Run ends sessions.
func (c *userEndSessionsCmd) Run(ctx context.Context, s streams) error {
	done := "all sessions and API keys have ended"
	if c.Session != "" {
		done = "the session has ended"
	}
	_, err := c.act(ctx, s, command.UserRequest{Act: command.EndSessions, User: c.User, Session: c.Session}, done)
	return err
}

type userRecoverCmd struct {
	oneUser
	To string `help:"The address, if the user has several." placeholder:"ADDRESS"`
}

// Run requests the mail, which the belfry that serves the stores sends.
func (c *userRecoverCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.RecoverUser, User: c.User, Address: c.To}, "a mail to set a new password will be sent")
	return err
}

type userUnlinkCmd struct {
	oneUser
	Ident string `arg:"" help:"Uuid of the ident, as printed by show."`
}

// Run removes an ident.
func (c *userUnlinkCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.UnlinkIdent, User: c.User, Ident: c.Ident}, c.Ident+" is no login any more; sessions continue, see belfry user end-sessions")
	return err
}

type userResetFactorsCmd struct{ oneUser }

// Run removes all second factors and recovery codes.
func (c *userResetFactorsCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.ResetFactors, User: c.User}, "there is no second factor any more, and all sessions have ended")
	return err
}
