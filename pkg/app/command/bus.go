package command

import (
	"context"
	"errors"
	"os"
	"strings"

	"belfry/config"
	"belfry/pkg/app/open"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// Connection is how the command of an operation connects to the bus.
type Connection int

// How a command connects to the bus, as a user of its own. With Permitted every request to JetStream, retry and reply
// has to be permitted. The server denies without a reply; that ends the operation, and the error says what was denied.
const (
	NoConnection Connection = iota
	Connected
	Permitted
)

// BusUser are the flags that select the bus that a command connects to, and the user: those of the configuration by
// default.
type BusUser struct {
	URL          string `name:"url" help:"The bus, instead of the configured one: nats://HOST:PORT." placeholder:"URL"`
	User         string `help:"User of the bus, instead of the configured one." placeholder:"NAME"`
	PasswordFile string `help:"File with the user's password. Default: the environment variable BELFRY_BUS_PASSWORD." placeholder:"FILE"`
	Creds        string `help:"File with a user's JWT and seed, instead of user and password." placeholder:"FILE"`
}

// busFlags are the flags of a command that connects to the bus.
type busFlags struct {
	BusUser
	Flags any `embed:""`
}

// connect connects to the bus, calls a function with it, and disconnects.
func (how Connection) connect(ctx context.Context, o bus.Options, do func(context.Context, *bus.Client) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := bus.Dial(o)
	if err != nil {
		return err
	}
	defer b.Close()
	if how == Connected {
		return do(ctx, b)
	}
	ctx, done := b.UntilDenied(ctx, "$JS.API", strings.TrimSuffix(bus.RetryPrefix, "."), b.Conn().Opts.InboxPrefix)
	defer done()
	err = do(ctx, b)
	denied := (*bus.DeniedError)(nil)
	switch {
	case err == nil || !errors.As(context.Cause(ctx), &denied):
		return err
	case bus.IsInbox(denied.Subject):
		return errs.New(errs.Unavailable, "the user of the bus lacks the permission for %s, where replies arrive: "+
			"give the user with --user and the password with BELFRY_BUS_PASSWORD, not in the URL, and they arrive on "+
			"_INBOX_<user>, as nats.conf permits", denied.Subject)
	default:
		return errs.New(errs.Unavailable, "the user of the bus lacks the permission for %s: with nats.conf, the log, "+
			"dead letters and positions of listeners are for the user admin (--user admin)", denied.Subject)
	}
}

// Options are those of the connection. The configuration is read unless the flags name the bus.
func (f BusUser) Options(load func() (*config.Config, error)) (bus.Options, error) {
	o := bus.Options{URL: f.URL}
	if f.URL == "" {
		c, err := load()
		if err != nil {
			return o, err
		}
		if o, err = open.BusClient(c); err != nil {
			return o, err
		}
	}
	o.Name = "belfry command"
	auth, err := f.auth()
	if auth != (bus.Auth{}) {
		o.Auth = auth
	}
	return o, err
}

// auth returns the credentials of the flags.
func (f BusUser) auth() (bus.Auth, error) {
	switch {
	case f.User != "" && f.Creds != "":
		return bus.Auth{}, errs.New(errs.Invalid, "--user and --creds are alternatives; choose one")
	case f.User == "" && f.PasswordFile != "":
		return bus.Auth{}, errs.New(errs.Invalid, "--password-file needs --user")
	case f.Creds != "":
		if _, err := os.Stat(f.Creds); err != nil {
			return bus.Auth{}, errs.Wrap(err, errs.Invalid, "--creds: can't read the file")
		}
		return bus.Auth{Credentials: f.Creds}, nil
	case f.User == "":
		return bus.Auth{}, nil
	}
	password := os.Getenv("BELFRY_BUS_PASSWORD")
	if f.PasswordFile != "" {
		data, err := os.ReadFile(f.PasswordFile)
		if err != nil {
			return bus.Auth{}, errs.Wrap(err, errs.Invalid, "--password-file: can't read the file")
		}
		password = strings.TrimRight(string(data), "\r\n")
	}
	return bus.Auth{User: f.User, Password: password}, nil
}
