package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"belfry/pkg/errs"
)

const (
	defaultTimeout = 10 * time.Second
	replyLimit     = 64 << 10 // of tokens and profiles
)

// errSlow is why a context ended that belfry itself has bounded.
var errTimeout = errors.New("the provider is too slow")

// web makes the requests to one provider, and bounds each in time and size. A
// reply of which nothing can be made is an *errs.Error, which the libraries
// that ask hand up inside of theirs.
type transport struct {
	name    string // of the provider, in messages
	timeout time.Duration
	limit   int // of a reply in bytes
}

func newTransport(name string, timeout time.Duration) *transport {
	return &transport{name: name, timeout: cmp.Or(timeout, defaultTimeout), limit: replyLimit}
}

func (t *transport) client() *http.Client { return &http.Client{Transport: t} }

// within bounds a Begin or a Finish as a whole.
func (t *transport) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.timeout, errTimeout)
}

// RoundTrip makes a request and reads the whole reply, so that all that can
// go wrong with it goes wrong here.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := t.withTimeout(req.Context())
	defer cancel()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", "belfry")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, t.unavailable(ctx, err)
	}
	defer resp.Body.Close()
	if err := t.checkStatus(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.limit)+1))
	if err != nil {
		return nil, t.unavailable(ctx, err)
	}
	if len(body) > t.limit {
		return nil, errs.New(errs.Invalid, "a reply of %s has more than %d bytes", t.name, t.limit)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// judge refuses the replies that mean the same whatever was asked. No redirect
// is followed: it could carry codes and secrets to another host.
func (t *transport) checkStatus(resp *http.Response) error {
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return errs.New(errs.Internal, "%s answered with a redirect (status %d), which belfry does not follow: check the configured URLs", t.name, status)
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusForbidden && rateLimited(resp.Header):
		e := errs.New(errs.Unavailable, "%s has trouble (status %d); try again later", t.name, status)
		e.RetryAfter = retryAfter(resp.Header)
		return e
	default:
		return nil
	}
}

// rateLimited recognises GitHub's other way to say status 429.
func rateLimited(h http.Header) bool {
	return h.Get("Retry-After") != "" || h.Get("X-Ratelimit-Remaining") == "0"
}

func retryAfter(h http.Header) time.Duration {
	const most = 3600
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(min(seconds, most)) * time.Second
}

// away says why there is no reply.
func (t *transport) unavailable(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return errs.New(errs.Unavailable, "%s did not answer within %v; try again later", t.name, t.timeout)
	case ctx.Err() != nil:
		return errs.Wrap(ctx.Err(), errs.Canceled, "the login was given up while %s was asked", t.name)
	default:
		return &errs.Error{Kind: errs.Unavailable, Message: t.name + " can't be reached; try again later", Err: loggableCause(err)}
	}
}

// cause is what may be logged of a failed request: other errors of net/http
// quote what the server sent.
func loggableCause(err error) error {
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return certificate
	case errors.As(err, &network):
		return network
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	default:
		return nil
	}
}

// get asks for a document, through a client that says who asks.
func (t *transport) get(ctx context.Context, client *http.Client, url string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, errs.New(errs.Internal, "the profile's URL of %s is malformed", t.name)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return nil, knownError(err, errs.New(errs.Unavailable, "%s can't be asked for the profile", t.name))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errs.New(errs.Invalid, "%s does not show the user's profile (status %d); begin again", t.name, resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}

// known returns the *errs.Error inside err, else otherwise. What a library
// says around it is dropped: that may quote URLs and replies.
func knownError(err error, otherwise *errs.Error) error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	return otherwise
}
