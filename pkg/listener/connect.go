package listener

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// The environment of a program that listens. At most one of the ways to say who
// it is may be given; a user goes with a password.
const (
	EnvURL         = "BELFRY_BUS_URL"         // nats://a:4222,nats://b:4222; DefaultURL when empty
	EnvUser        = "BELFRY_BUS_USER"        // with EnvPassword
	EnvPassword    = "BELFRY_BUS_PASSWORD"    //nolint:gosec // a name, no secret
	EnvToken       = "BELFRY_BUS_TOKEN"       //nolint:gosec // a name, no secret
	EnvCredentials = "BELFRY_BUS_CREDENTIALS" //nolint:gosec // a name; of a file with a user's JWT and seed
	EnvNKey        = "BELFRY_BUS_NKEY"        // file with an nkey seed
	EnvCA          = "BELFRY_BUS_CA"          // file of the authorities to trust, in PEM
)

// DefaultURL is where a belfry on the same machine has its bus.
const DefaultURL = "nats://127.0.0.1:4222"

const (
	soon      = time.Second // in which a bus that is there is ready, and nothing need be said
	lookSoon  = 20 * time.Millisecond
	lookAgain = time.Second
)

// Connect connects to the bus that the environment names, as a guest: streams
// are used as they are. It waits until the bus is there, or ctx ends, and tells
// the log what it waits for. It reports errs.Invalid for an environment that
// can't work. Name is the connection's, for who looks at the server.
func Connect(ctx context.Context, name string, log *slog.Logger) (*bus.Bus, error) {
	opts, err := environment(os.Getenv)
	if err != nil {
		return nil, err
	}
	opts.Name, opts.Logger = name, log
	b, err := bus.Open(ctx, opts)
	if err != nil {
		return nil, err
	}
	began, said := time.Now(), ""
	for err = b.Ready(ctx); err != nil; err = b.Ready(ctx) {
		if ctx.Err() != nil {
			_ = b.Close(context.WithoutCancel(ctx))
			return nil, errs.Wrap(ctx.Err(), errs.Canceled, "the bus at %s was not there in time", address(opts.URL))
		}
		if time.Since(began) < soon {
			_ = backoff.Sleep(ctx, lookSoon)
			continue
		}
		if reason := err.Error(); reason != said {
			said = reason
			log.Warn("waiting for the bus", "url", address(opts.URL), "error", err)
		}
		_ = backoff.Sleep(ctx, lookAgain)
	}
	return b, nil
}

// environment are the options that the environment asks for.
func environment(get func(string) string) (bus.Options, error) {
	o := bus.Options{URL: get(EnvURL), Unmanaged: true, TLS: bus.TLS{CA: get(EnvCA)}}
	if o.URL == "" {
		o.URL = DefaultURL
	}
	o.Auth = bus.Auth{
		Credentials: get(EnvCredentials), User: get(EnvUser), Password: get(EnvPassword), Token: get(EnvToken),
	}
	for u := range strings.SplitSeq(o.URL, ",") {
		// What is wrong with it is not told: it may hold a password.
		if parsed, err := url.Parse(strings.TrimSpace(u)); err != nil || parsed.Host == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, parsed.Scheme) {
			return o, errs.New(errs.Invalid, "%s is no list of addresses like %s", EnvURL, DefaultURL)
		}
	}
	read := func(name string) ([]byte, error) {
		path := get(name)
		if path == "" {
			return nil, nil
		}
		text, err := os.ReadFile(path)
		return text, errs.Wrap(err, errs.Invalid, "%s names no readable file", name)
	}
	if _, err := read(EnvCredentials); err != nil {
		return o, err
	}
	seed, err := read(EnvNKey)
	if err != nil {
		return o, err
	}
	o.Auth.NKeySeed = strings.TrimSpace(string(seed))
	authorities, err := read(EnvCA)
	if err != nil {
		return o, err
	}
	if get(EnvCA) != "" && !x509.NewCertPool().AppendCertsFromPEM(authorities) {
		return o, errs.New(errs.Invalid, "%s names a file without a certificate in PEM", EnvCA)
	}
	return o, ways(o.Auth)
}

// ways refuses more than one way to say who one is.
func ways(a bus.Auth) error {
	n := 0
	for _, given := range []string{a.Credentials, a.User, a.Token, a.NKeySeed} {
		if given != "" {
			n++
		}
	}
	switch {
	case n > 1:
		return errs.New(errs.Invalid, "more than one of %s, %s, %s and %s is set; choose one", EnvCredentials, EnvUser, EnvToken, EnvNKey)
	case (a.User == "") != (a.Password == ""):
		return errs.New(errs.Invalid, "%s and %s go together", EnvUser, EnvPassword)
	}
	return nil
}

// address is a list of addresses as it may be shown: without passwords.
func address(urls string) string {
	all := strings.Split(urls, ",")
	for i, u := range all {
		if parsed, err := url.Parse(strings.TrimSpace(u)); err == nil {
			parsed.User = nil
			all[i] = parsed.String()
		}
	}
	return strings.Join(all, ",")
}
