package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/user"
	"strings"
	"text/tabwriter"

	"belfry/pkg/account"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

type userCmd struct {
	Create       userCreateCmd       `cmd:"" help:"Create a user who logs in by e-mail, or a machine."`
	List         userListCmd         `cmd:"" help:"List all users."`
	Show         userShowCmd         `cmd:"" help:"Show a user with idents and sessions."`
	Admin        userAdminCmd        `cmd:"" help:"Make a user an admin, or no longer."`
	Disable      userDisableCmd      `cmd:"" help:"Disable a user: all sessions end, and no login succeeds."`
	Enable       userEnableCmd       `cmd:"" help:"Enable a user again."`
	Password     userPasswordCmd     `cmd:"" help:"Set a user's password: all sessions end."`
	Delete       userDeleteCmd       `cmd:"" help:"Delete a user, their idents and sessions, and what else cascades."`
	UndoDeletion userUndoDeletionCmd `cmd:"" help:"Take back a deletion that a user has planned."`
	KeepChanges  userKeepChangesCmd  `cmd:"" help:"End the rights to undo changes of a user's addresses."`
	Key          userKeyCmd          `cmd:"" help:"Create and revoke API keys of a user."`

	Sessions    userSessionsCmd    `cmd:"" help:"List the sessions of a user."`
	EndSessions userEndSessionsCmd `cmd:"" help:"End all sessions and API keys of a user, or one session."`
	Recover     userRecoverCmd     `cmd:"" help:"Send a user the mail with which they set a new password."`
	Unlink      userUnlinkCmd      `cmd:"" help:"Remove a login of a user who has another one."`

	ResetFactors userResetFactorsCmd `cmd:"" help:"Remove the second factors of a user who has lost them; all sessions end."`
}

// userFlags are those of all commands about users.
type userFlags struct {
	configuration
	JSON bool `name:"json" help:"One JSON object a line."`
}

// oneUser are the flags of commands about one user.
type oneUser struct {
	userFlags
	User string `arg:"" help:"Uuid or e-mail address of the user."`
}

// manage calls do with what executes requests.
func (f userFlags) manage(ctx context.Context, mayCreate bool, do func(command.AskUsers) error) error {
	loaded, err := f.load("")
	if err != nil {
		return err
	}
	by := ""
	if me, err := user.Current(); err == nil {
		by = me.Username
	}
	return command.ManageUsers(ctx, loaded, mayCreate, func(ask command.AskUsers) error {
		return do(func(ctx context.Context, q command.UserRequest) (*command.UserReply, error) {
			q.By = by
			return ask(ctx, q)
		})
	})
}

// act executes an act about one user and prints what was done.
func (f userFlags) act(ctx context.Context, s streams, q command.UserRequest, done string) (account.Account, error) {
	var a account.Account
	err := f.manage(ctx, q.Act == command.CreateUser, func(ask command.AskUsers) error {
		reply, err := ask(ctx, q)
		if err != nil {
			return err
		}
		a = reply.Users[0]
		if f.JSON {
			return encoder(s.out).Encode(a)
		}
		_, err = fmt.Fprintf(s.out, "%s: %s\n", describeUser(a), done)
		return err
	})
	return a, err
}

// encoder writes JSON for people and scripts, in which rules stay readable.
func encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// describeUser names a user by uuid and logins.
func describeUser(a account.Account) string {
	logins := loginsOf(a)
	if len(logins) == 0 {
		return a.UUID
	}
	return a.UUID + " (" + strings.Join(logins, ", ") + ")"
}

// loginsOf returns the idents of a user: of a list those that the user's array has.
func loginsOf(a account.Account) (logins []string) {
	for _, i := range a.Idents {
		logins = append(logins, i.UUID)
	}
	if logins != nil {
		return logins
	}
	var u struct {
		Idents []struct {
			UUID string `json:"uuid"`
		} `json:"idents"`
	}
	_ = json.Unmarshal(a.User, &u)
	for _, i := range u.Idents {
		logins = append(logins, i.UUID)
	}
	return logins
}

type userListCmd struct{ userFlags }

// Run prints a line for each user.
func (c *userListCmd) Run(ctx context.Context, s streams) error {
	return c.manage(ctx, false, func(ask command.AskUsers) error {
		each := encoder(s.out).Encode
		if !c.JSON {
			t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			defer func() { _ = t.Flush() }()
			fmt.Fprintln(t, "UUID\tADMIN\tDISABLED\tDELETION\tCREATED\tLOGINS")
			each = func(v any) error { return writeUser(t, v.(account.Account)) }
		}
		for q := (command.UserRequest{Act: command.ListUsers}); ; {
			reply, err := ask(ctx, q)
			if err != nil {
				return err
			}
			for _, a := range reply.Users {
				if err := each(a); err != nil {
					return err
				}
			}
			if q.After = reply.Next; q.After == nil {
				return nil
			}
		}
	})
}

func writeUser(w io.Writer, a account.Account) error {
	yes := map[bool]string{true: "yes", false: "-"}
	created, _ := object.Text(object.Field(a.User, "created"))
	deletion := "-"
	if a.Deletion != nil {
		deletion = a.Deletion.Deleted
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.UUID, yes[a.Admin], yes[a.Disabled], deletion, created, strings.Join(loginsOf(a), ", "))
	return err
}

type userShowCmd struct{ oneUser }

// Run prints a user.
func (c *userShowCmd) Run(ctx context.Context, s streams) error {
	return c.manage(ctx, false, func(ask command.AskUsers) error {
		reply, err := ask(ctx, command.UserRequest{Act: command.ShowUser, User: c.User})
		if err != nil {
			return err
		}
		e := encoder(s.out)
		if !c.JSON {
			e.SetIndent("", "  ")
		}
		return e.Encode(reply.Users[0])
	})
}

type userAdminCmd struct {
	oneUser
	Revoke bool `help:"The user is no longer an admin."`
}

// Run makes a user an admin. It fails if the rule of the configuration says otherwise.
func (c *userAdminCmd) Run(ctx context.Context, s streams) error {
	q, done := command.UserRequest{Act: command.GrantAdmin, User: c.User}, "the field admin is set"
	if c.Revoke {
		q.Act, done = command.RevokeAdmin, "the field admin is removed"
	}
	a, err := c.act(ctx, s, q, done)
	if err == nil && a.Admin == c.Revoke {
		err = errRule(a)
	}
	return err
}

// errRule reports that the rule of the configuration does not follow the field.
func errRule(a account.Account) error {
	if a.Admin {
		return errs.New(errs.Conflict, "the user is still an admin: the rule `admins` of the configuration is about other fields")
	}
	return errs.New(errs.Conflict, "the user is no admin: the rule `admins` of the configuration is about other fields")
}

type userDisableCmd struct{ oneUser }

// Run disables a user.
func (c *userDisableCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.DisableUser, User: c.User}, "disabled; all sessions have ended")
	return err
}

type userEnableCmd struct{ oneUser }

// Run enables a user.
func (c *userEnableCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.EnableUser, User: c.User}, "enabled")
	return err
}

type userUndoDeletionCmd struct{ oneUser }

// Run takes back a deletion that a user has planned.
func (c *userUndoDeletionCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.UndoDelete, User: c.User}, "the account will not be deleted")
	return err
}

type userKeepChangesCmd struct{ oneUser }

// Run ends the rights to undo changes of address.
func (c *userKeepChangesCmd) Run(ctx context.Context, s streams) error {
	_, err := c.act(ctx, s, command.UserRequest{Act: command.KeepChanges, User: c.User}, "the changes of address can't be undone any more")
	return err
}

type userCreateCmd struct {
	userFlags
	Login      string `arg:"" optional:"" name:"address" help:"The e-mail address; none for a machine."`
	Machine    bool   `help:"The user is a program: it has no login but API keys, see belfry user key."`
	Admin      bool   `help:"The user is an admin."`
	Validated  bool   `help:"The address counts as validated."`
	NoPassword bool   `help:"The user has no password until they recover the account by mail."`
	Fields     string `help:"Further fields of the user, as far as programs may set them." placeholder:"JSON"`
}

// Run creates a user, with a password that is read from the terminal or standard input.
func (c *userCreateCmd) Run(ctx context.Context, s streams) error {
	switch _, err := account.NormalizeAddress(c.Login); {
	case c.Machine && (c.Login != "" || c.Validated || c.NoPassword):
		return errs.New(errs.Invalid, "--machine: a machine has neither an address nor a password; leave out the address, --validated and --no-password")
	case !c.Machine && err != nil:
		return err
	}
	q := command.UserRequest{Act: command.CreateUser, Login: c.Login, Admin: c.Admin, Validated: c.Validated, Machine: c.Machine}
	if c.Fields != "" {
		if _, err := object.Parse([]byte(c.Fields)); err != nil {
			return errs.Wrap(err, errs.Invalid, "--fields: expected a JSON object")
		}
		q.Fields = json.RawMessage(c.Fields)
	}
	var err error
	if !c.NoPassword && !c.Machine {
		if q.Password, err = readPassword(ctx, s); err != nil {
			return err
		}
	}
	a, err := c.act(ctx, s, q, "created")
	if err == nil && c.Admin && !a.Admin {
		err = errRule(a)
	}
	return err
}

type userPasswordCmd struct{ oneUser }

// Run sets a password that is read from the terminal or standard input.
func (c *userPasswordCmd) Run(ctx context.Context, s streams) error {
	password, err := readPassword(ctx, s)
	if err != nil {
		return err
	}
	_, err = c.act(ctx, s, command.UserRequest{Act: command.SetPassword, User: c.User, Password: password}, "the password is set; all sessions have ended")
	return err
}

type userDeleteCmd struct {
	oneUser
	Yes bool `help:"Do not ask."`
}

// Run deletes a user, once that is confirmed.
func (c *userDeleteCmd) Run(ctx context.Context, s streams) error {
	if !c.Yes {
		if err := confirm(ctx, s, "Delete the user "+c.User+", and all objects that cascade? There is no way back. Type yes: "); err != nil {
			return err
		}
	}
	_, err := c.act(ctx, s, command.UserRequest{Act: command.DeleteUser, User: c.User}, "deleted")
	return err
}
