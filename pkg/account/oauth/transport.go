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
	replyLimit     = 1 << 20 // of tokens and profiles: some have thousands of groups
)

// errTimeout is the cause of a context that ended by our own timeout.
var errTimeout = errors.New("the provider is too slow")

// transport makes the requests to one provider and limits their duration and the
// size of replies. An unusable reply is an *errs.Error, which the libraries
// return wrapped in theirs.
type transport struct {
	name    string // of the provider, in messages
	timeout time.Duration
	limit   int // of a reply in bytes
	next    http.RoundTripper
}

func newTransport(name string, by Requests) *transport {
	return &transport{name: name, timeout: cmp.Or(by.Timeout, defaultTimeout), limit: replyLimit,
		next: cmp.Or(by.Transport, http.DefaultTransport)}
}

func (t *transport) client() *http.Client { return &http.Client{Transport: t} }

// withTimeout limits Begin or Finish as a whole.
func (t *transport) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t.timeout, errTimeout)
}

// RoundTrip makes a request and reads the whole reply, so that all its errors occur
// here.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := t.withTimeout(req.Context())
	defer cancel()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", "belfry")
	resp, err := t.next.RoundTrip(req)
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

// checkStatus rejects redirects, server errors and rate limits. No redirect is
// followed: it could send codes and secrets to another host.
func (t *transport) checkStatus(resp *http.Response) error {
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return errs.New(errs.Internal,
			"%s replied with a redirect (status %d), which belfry does not follow: check the configured URLs", t.name,
			status)
	case status >= 500 || status == http.StatusTooManyRequests ||
		status == http.StatusForbidden && rateLimited(resp.Header):
		e := errs.New(errs.Unavailable, "%s is unavailable (status %d); try again later", t.name, status)
		e.RetryAfter = retryAfter(resp.Header)
		return e
	default:
		return nil
	}
}

// rateLimited reports whether a 403 is a rate limit, as GitHub's may be.
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

// unavailable returns the error for a missing reply.
func (t *transport) unavailable(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return errs.New(errs.Unavailable, "%s did not respond within %v; try again later", t.name, t.timeout)
	case ctx.Err() != nil:
		return errs.Wrap(ctx.Err(), errs.Canceled, "the login was canceled while waiting for %s", t.name)
	default:
		return &errs.Error{Kind: errs.Unavailable, Message: t.name + " can't be reached; try again later",
			Err: loggableCause(err)}
	}
}

// loggableCause is the part of a failed request's error that may be logged: other
// errors of net/http quote the server.
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

// get fetches a document through a client that authenticates itself.
func (t *transport) get(ctx context.Context, client *http.Client, url string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, errs.New(errs.Internal, "the profile's URL of %s is malformed", t.name)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return nil, knownError(err, errs.New(errs.Unavailable, "the profile could not be fetched from %s", t.name))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errs.New(errs.Invalid, "%s does not return the user's profile (status %d); start the login again",
			t.name, resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}

// knownError returns the *errs.Error inside err, or otherwise. The library's text
// around it is dropped: it may quote URLs and replies.
func knownError(err error, otherwise *errs.Error) error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	return otherwise
}
