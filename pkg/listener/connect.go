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

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// The environment of a program of listeners. At most one way to authenticate may
// be set; a user needs a password.
const (
	EnvURL         = "BELFRY_BUS_URL"         // nats://a:4222,nats://b:4222; DefaultURL when empty
	EnvUser        = "BELFRY_BUS_USER"        // with EnvPassword
	EnvPassword    = "BELFRY_BUS_PASSWORD"    //nolint:gosec // a name, no secret
	EnvToken       = "BELFRY_BUS_TOKEN"       //nolint:gosec // a name, no secret
	EnvCredentials = "BELFRY_BUS_CREDENTIALS" //nolint:gosec // a name; of a file with a user's JWT and seed
	EnvNKey        = "BELFRY_BUS_NKEY"        // file with an nkey seed
	EnvCA          = "BELFRY_BUS_CA"          // file of trusted certificate authorities, in PEM
)

// DefaultURL is where a belfry on the same machine has its bus.
const DefaultURL = "nats://127.0.0.1:4222"

const (
	quietWait    = time.Second // in which a running bus is ready: nothing is logged before
	pollFirst    = 20 * time.Millisecond
	pollInterval = time.Second
)

// Connect connects to the bus that the environment names. It neither creates nor
// changes streams. It waits until the bus is ready or ctx ends, and logs what it
// waits for. It reports errs.Invalid for an environment that can't work. The
// server shows name as the connection's.
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
	began, logged := time.Now(), ""
	for err = b.Ready(ctx); err != nil; err = b.Ready(ctx) {
		if ctx.Err() != nil {
			_ = b.Close(context.WithoutCancel(ctx))
			return nil, errs.Wrap(ctx.Err(), errs.Canceled, "the bus at %s was not ready in time", address(opts.URL))
		}
		if time.Since(began) < quietWait {
			_ = backoff.Sleep(ctx, pollFirst)
			continue
		}
		if reason := err.Error(); reason != logged {
			logged = reason
			log.Warn("waiting for the bus", "url", address(opts.URL), "error", err)
		}
		_ = backoff.Sleep(ctx, pollInterval)
	}
	return b, nil
}

// environment returns the options that the environment sets.
func environment(get func(string) string) (bus.Options, error) {
	o := bus.Options{URL: get(EnvURL), Unmanaged: true, TLS: bus.TLS{CA: get(EnvCA)}}
	if o.URL == "" {
		o.URL = DefaultURL
	}
	o.Auth = bus.Auth{
		Credentials: get(EnvCredentials), User: get(EnvUser), Password: get(EnvPassword), Token: get(EnvToken),
	}
	for u := range strings.SplitSeq(o.URL, ",") {
		// The message does not quote it: it may contain a password.
		if parsed, err := url.Parse(strings.TrimSpace(u)); err != nil || parsed.Host == "" ||
			!slices.Contains([]string{"nats", "tls", "ws", "wss"}, parsed.Scheme) {
			return o, errs.New(errs.Invalid, "%s is not a list of addresses like %s", EnvURL, DefaultURL)
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
	return o, validateAuth(o.Auth)
}

// validateAuth rejects more than one way to authenticate.
func validateAuth(a bus.Auth) error {
	n := 0
	for _, given := range []string{a.Credentials, a.User, a.Token, a.NKeySeed} {
		if given != "" {
			n++
		}
	}
	switch {
	case n > 1:
		return errs.New(errs.Invalid, "more than one of %s, %s, %s and %s is set; choose one", EnvCredentials, EnvUser,
			EnvToken, EnvNKey)
	case (a.User == "") != (a.Password == ""):
		return errs.New(errs.Invalid, "set both %s and %s, or neither", EnvUser, EnvPassword)
	}
	return nil
}

// address is a list of addresses without users and passwords.
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
