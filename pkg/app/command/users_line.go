package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/user"
	"strings"
	"text/tabwriter"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// userCommands are the commands about users.
var userCommands = []Command[UserRequest, UserReply]{
	{Words: "user create", Help: "Create a user who logs in by e-mail, or a machine.", Flags: &userCreateFlags{}},
	{Words: "user list", Help: "List all users.", Flags: &userListFlags{}},
	{Words: "user show", Help: "Show a user with idents and sessions.", Flags: &userShowFlags{}},
	{Words: "user admin", Help: "Make a user an admin, or no longer.", Flags: &userAdminFlags{}},
	{
		Words: "user disable", Help: "Disable a user: all sessions end, and no login succeeds.",
		Flags: &userFlags{act: DisableUser, done: "disabled; all sessions have ended"},
	},
	{Words: "user enable", Help: "Enable a user again.", Flags: &userFlags{act: EnableUser, done: "enabled"}},
	{
		Words: "user password", Help: "Set a user's password: all sessions end.",
		Flags: &userPasswordFlags{userFlags{act: SetPassword, done: "the password is set; all sessions have ended"}},
	},
	{
		Words: "user delete", Help: "Delete a user, their idents and sessions, and what else cascades.",
		Flags: &userDeleteFlags{userFlags: userFlags{act: DeleteUser, done: "deleted"}},
	},
	{
		Words: "user undo-deletion", Help: "Cancel a user's planned deletion.",
		Flags: &userFlags{act: UndoDelete, done: "the account will not be deleted"},
	},
	{
		Words: "user keep-changes", Help: "End the rights to undo changes of a user's addresses.",
		Flags: &userFlags{act: KeepChanges, done: "the changes of address can no longer be undone"},
	},
	{
		Words: "user key create", Help: "Create an API key and print its token, which is shown once.",
		Flags: &keyCreateFlags{},
	},
	{
		Words: "user key revoke", Help: "Revoke an API key.",
		Flags: &keyRevokeFlags{userFlags: userFlags{act: RevokeKey, done: "the API key is revoked"}},
	},
	{Words: "user sessions", Help: "List the sessions of a user.", Flags: &userSessionsFlags{}},
	{
		Words: "user end-sessions", Help: "End all sessions and API keys of a user, or one session.",
		Flags: &endSessionsFlags{},
	},
	{
		Words: "user recover", Help: "Send a user the mail with which they set a new password.",
		Flags: &userRecoverFlags{userFlags: userFlags{act: RecoverUser,
			done: "a mail to set a new password will be sent"}},
	},
	{Words: "user unlink", Help: "Remove a login of a user who has another one.", Flags: &userUnlinkFlags{}},
	{
		Words: "user reset-factors", Help: "Remove the second factors of a user who has lost them; all sessions end.",
		Flags: &userFlags{act: ResetFactors, done: "all second factors are removed, and all sessions have ended"},
	},
}

// oneUser names a user.
type oneUser struct {
	linesFlag
	User string `arg:"" help:"Uuid or e-mail address of the user."`
}

// userFlags are the flags of an action that only needs the user.
type userFlags struct {
	oneUser
	act  UserAct
	done string // printed after the action
}

// asked adds the requesting account of the operating system to a request.
func asked(q UserRequest) UserRequest {
	if me, err := user.Current(); err == nil {
		q.By = me.Username
	}
	return q
}

// Request implements Flags.
func (f *userFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: f.act, User: f.User}), nil
}

// Print implements Flags.
func (f *userFlags) Print(s Streams, r *UserReply) error { return f.printUser(s, r, f.done) }

// printUser prints the user and the result.
func (f linesFlag) printUser(s Streams, r *UserReply, done string) error {
	if f.JSON {
		return encoder(s.Out).Encode(r.Users[0])
	}
	_, err := fmt.Fprintf(s.Out, "%s: %s\n", describeUser(r.Users[0]), done)
	return err
}

// describeUser names a user by uuid and logins.
func describeUser(a admin.Account) string {
	logins := loginsOf(a)
	if len(logins) == 0 {
		return a.UUID
	}
	return a.UUID + " (" + strings.Join(logins, ", ") + ")"
}

// loginsOf returns the idents of a user; in a list, those in the user's array.
func loginsOf(a admin.Account) (logins []string) {
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

type userListFlags struct{ linesFlag }

// Request implements Flags.
func (f *userListFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: ListUsers}), nil
}

// Show implements Flags: it prints a line for each user.
func (f *userListFlags) Show(s Streams) (report func(UserReply), end func(error)) {
	if f.JSON {
		e := encoder(s.Out)
		return func(page UserReply) {
			for _, a := range page.Users {
				_ = e.Encode(a)
			}
		}, func(error) {}
	}
	t, begun := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0), false
	return func(page UserReply) {
		if !begun {
			fmt.Fprintln(t, "UUID\tADMIN\tDISABLED\tDELETION\tCREATED\tLOGINS")
			begun = true
		}
		for _, a := range page.Users {
			writeUser(t, a)
		}
	}, func(error) { _ = t.Flush() }
}

// Print implements Flags: everything is printed.
func (f *userListFlags) Print(Streams, *UserReply) error { return nil }

func writeUser(w io.Writer, a admin.Account) {
	yes := map[bool]string{true: "yes", false: "-"}
	created, _ := object.Text(object.Field(a.User, "created"))
	deletion := "-"
	if a.Deletion != nil {
		deletion = a.Deletion.Deleted
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", a.UUID, yes[a.Admin], yes[a.Disabled], deletion, created,
		strings.Join(loginsOf(a), ", "))
}

type userShowFlags struct{ oneUser }

// Request implements Flags.
func (f *userShowFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: ShowUser, User: f.User}), nil
}

// Print implements Flags.
func (f *userShowFlags) Print(s Streams, r *UserReply) error {
	e := encoder(s.Out)
	if !f.JSON {
		e.SetIndent("", "  ")
	}
	return e.Encode(r.Users[0])
}

type userAdminFlags struct {
	oneUser
	Revoke bool `help:"The user is no longer an admin."`
}

// Request implements Flags.
func (f *userAdminFlags) Request(context.Context, Streams) (UserRequest, error) {
	q := UserRequest{Act: GrantAdmin, User: f.User}
	if f.Revoke {
		q.Act = RevokeAdmin
	}
	return asked(q), nil
}

// Print implements Flags. It fails if the rule of the configuration decides otherwise.
func (f *userAdminFlags) Print(s Streams, r *UserReply) error {
	done := "the field admin is set"
	if f.Revoke {
		done = "the field admin is removed"
	}
	err := f.printUser(s, r, done)
	if err == nil && r.Users[0].Admin == f.Revoke {
		err = errRule(r.Users[0])
	}
	return err
}

// errRule reports that the rule of the configuration does not follow the field.
func errRule(a admin.Account) error {
	if a.Admin {
		return errs.New(errs.Conflict,
			"the user is still an admin: the rule `admins` of the configuration uses other fields")
	}
	return errs.New(errs.Conflict, "the user is not an admin: the rule `admins` of the configuration uses other fields")
}

type userCreateFlags struct {
	linesFlag
	Login      string `arg:"" optional:"" name:"address" help:"The e-mail address; none for a machine."`
	Machine    bool   `help:"The user is a program: it has no login but API keys, see belfry user key."`
	Admin      bool   `help:"The user is an admin."`
	Validated  bool   `help:"The address counts as validated."`
	NoPassword bool   `help:"The user has no password until they recover the account by mail."`
	Fields     string `help:"Further fields of the user, as far as programs may set them." placeholder:"JSON"`
}

// Request implements Flags. The password is read from the terminal or standard input.
func (f *userCreateFlags) Request(ctx context.Context, s Streams) (q UserRequest, err error) {
	switch _, err := record.NormalizeAddress(f.Login); {
	case f.Machine && (f.Login != "" || f.Validated || f.NoPassword):
		return q, errs.New(errs.Invalid, "--machine: a machine has neither an address nor a password; leave out the "+
			"address, --validated and --no-password")
	case !f.Machine && err != nil:
		return q, err
	}
	q = asked(UserRequest{Act: CreateUser, Login: f.Login, Admin: f.Admin, Validated: f.Validated, Machine: f.Machine})
	if f.Fields != "" {
		if _, err := object.Parse([]byte(f.Fields)); err != nil {
			return q, errs.Wrap(err, errs.Invalid, "--fields: expected a JSON object")
		}
		q.Fields = json.RawMessage(f.Fields)
	}
	if !f.NoPassword && !f.Machine {
		q.Password, err = s.Password(ctx)
	}
	return q, err
}

// Print implements Flags.
func (f *userCreateFlags) Print(s Streams, r *UserReply) error {
	err := f.printUser(s, r, "created")
	if err == nil && f.Admin && !r.Users[0].Admin {
		err = errRule(r.Users[0])
	}
	return err
}

type userPasswordFlags struct{ userFlags }

// Request implements Flags. The password is read from the terminal or standard input.
func (f *userPasswordFlags) Request(ctx context.Context, s Streams) (UserRequest, error) {
	password, err := s.Password(ctx)
	return asked(UserRequest{Act: f.act, User: f.User, Password: password}), err
}

type userDeleteFlags struct {
	userFlags
	Yes bool `help:"Do not ask."`
}

// Request implements Flags, once the deletion is confirmed.
func (f *userDeleteFlags) Request(ctx context.Context, s Streams) (q UserRequest, err error) {
	if !f.Yes {
		if err := s.Confirm(ctx,
			"Delete the user "+f.User+", and all objects that cascade? This can't be undone. Type yes: "); err != nil {
			return q, err
		}
	}
	return f.userFlags.Request(ctx, s)
}

type userSessionsFlags struct{ userShowFlags }

// Print implements Flags: it prints a line for each session.
func (f *userSessionsFlags) Print(s Streams, r *UserReply) error {
	sessions := r.Users[0].Sessions
	if f.JSON {
		return writeLinesOf(s.Out, sessions)
	}
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tTYPE\tLAST USED\tEXPIRES\tADDRESS\tPLACE\tDEVICE\tUSER AGENT")
	for _, i := range sessions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%q\n", i.ID, i.Type, i.LastUsed, i.Expires, cmp.Or(i.Address, "-"),
			cmp.Or(i.Place.String(), "-"), cmp.Or(i.Device, "-"), i.UserAgent)
	}
	return t.Flush()
}

type endSessionsFlags struct {
	oneUser
	Session string `arg:"" optional:"" name:"id" help:"Id of the only session to end. Default: all, and all API keys."`
}

// Request implements Flags.
func (f *endSessionsFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: EndSessions, User: f.User, Session: f.Session}), nil
}

// Print implements Flags.
func (f *endSessionsFlags) Print(s Streams, r *UserReply) error {
	done := "all sessions and API keys have ended"
	if f.Session != "" {
		done = "the session has ended"
	}
	return f.printUser(s, r, done)
}

type userRecoverFlags struct {
	userFlags
	To string `help:"The address, if the user has several." placeholder:"ADDRESS"`
}

// Request implements Flags. The belfry that serves the stores sends the mail.
func (f *userRecoverFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: f.act, User: f.User, Address: f.To}), nil
}

type userUnlinkFlags struct {
	oneUser
	Ident string `arg:"" help:"Uuid of the ident, as printed by show."`
}

// Request implements Flags.
func (f *userUnlinkFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: UnlinkIdent, User: f.User, Ident: f.Ident}), nil
}

// Print implements Flags.
func (f *userUnlinkFlags) Print(s Streams, r *UserReply) error {
	return f.printUser(s, r, f.Ident+" is no longer a login; sessions continue, see belfry user end-sessions")
}
