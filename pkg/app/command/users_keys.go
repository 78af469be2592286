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
	Name    string  `arg:"" help:"What the key is for."`
	Expires *string `help:"When it expires: a time (RFC 3339), or after how long, 720h for instance. Default: never." placeholder:"TIME"`
	Rule    *string `help:"CEL over method and path of a request; others are refused." placeholder:"RULE"`
}

// Request implements Flags.
func (f *keyCreateFlags) Request(context.Context, Streams) (q UserRequest, err error) {
	q = asked(UserRequest{Act: CreateKey, User: f.User, Key: keys.New{Name: f.Name}})
	if q.Key.Expires, err = expiry(f.Expires); err != nil {
		return q, err
	}
	if f.Rule != nil {
		// The variable of a script that is not set would make a key that may do everything.
		if q.Key.Rule = *f.Rule; q.Key.Rule == "" {
			return q, errs.New(errs.Invalid, "--rule: is empty; leave it out for a key that may do all that the user may")
		}
	}
	return q, nil
}

// Print implements Flags. The token is alone on standard output, so that a script can keep it.
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
		return at, errs.New(errs.Invalid, "--expires: expected a time such as 2030-01-02T15:04:05Z, or how long such as 720h")
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
