package command

import (
	"context"
	"fmt"
	"time"

	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
)

type keyCreateFlags struct {
	oneUser
	Name    string  `arg:"" help:"The purpose of the key."`
	Expires *string `help:"Time at which it expires (RFC 3339), or a duration, such as 720h. Default: never." placeholder:"TIME"`
	Rule    *string `help:"CEL over method and path of a request; requests for which it is false are refused." placeholder:"RULE"`
}

// Request implements Flags.
func (f *keyCreateFlags) Request(context.Context, Streams) (q UserRequest, err error) {
	q = asked(UserRequest{Act: CreateKey, User: f.User, Key: keys.New{Name: f.Name}})
	if q.Key.Expires, err = expiry(f.Expires); err != nil {
		return q, err
	}
	if f.Rule != nil {
		// An unset variable of a script would otherwise make a key with all rights.
		if q.Key.Rule = *f.Rule; q.Key.Rule == "" {
			return q, errs.New(errs.Invalid, "--rule: is empty; omit it for a key with all rights of the user")
		}
	}
	return q, nil
}

// Print implements Flags. Standard output has only the token, so that a script can store it.
func (f *keyCreateFlags) Print(s Streams, r *UserReply) error {
	if f.JSON {
		return encoder(s.Out).Encode(struct {
			*keys.Info
			Token string `json:"token"`
		}{r.Key, r.Token})
	}
	fmt.Fprintf(s.Err, "%s: API key %s; its token, which is not shown again:\n", describeUser(r.Users[0]), r.Key.ID)
	_, err := fmt.Fprintln(s.Out, r.Token)
	return err
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
		return at, errs.New(errs.Invalid,
			"--expires: expected a time such as 2030-01-02T15:04:05Z, or a duration such as 720h")
	}
	return at, nil
}

type keyRevokeFlags struct {
	userFlags
	Key string `arg:"" name:"id" help:"Id of the key, as printed by show."`
}

// Request implements Flags.
func (f *keyRevokeFlags) Request(context.Context, Streams) (UserRequest, error) {
	return asked(UserRequest{Act: f.act, User: f.User, Revoked: f.Key}), nil
}
