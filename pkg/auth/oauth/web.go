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
var errSlow = errors.New("the provider is too slow")

// web makes the requests to one provider, and bounds each in time and size. A
// reply of which nothing can be made is an *errs.Error, which the libraries
// that ask hand up inside of theirs.
type web struct {
	name    string // of the provider, in messages
	timeout time.Duration
	limit   int // of a reply in bytes
}

func newWeb(name string, timeout time.Duration) *web {
	return &web{name: name, timeout: cmp.Or(timeout, defaultTimeout), limit: replyLimit}
}

func (w *web) client() *http.Client { return &http.Client{Transport: w} }

// within bounds a Begin or a Finish as a whole.
func (w *web) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, w.timeout, errSlow)
}

// RoundTrip makes a request and reads the whole reply, so that all that can
// go wrong with it goes wrong here.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := w.within(req.Context())
	defer cancel()
	req = req.Clone(ctx)
	req.Header.Set("User-Agent", "belfry")
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, w.away(ctx, err)
	}
	defer resp.Body.Close()
	if err := w.judge(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(w.limit)+1))
	if err != nil {
		return nil, w.away(ctx, err)
	}
	if len(body) > w.limit {
		return nil, errs.New(errs.Invalid, "a reply of %s has more than %d bytes", w.name, w.limit)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// judge refuses the replies that mean the same whatever was asked. No redirect
// is followed: it could carry codes and secrets to another host.
func (w *web) judge(resp *http.Response) error {
	switch status := resp.StatusCode; {
	case status >= 300 && status < 400:
		return errs.New(errs.Internal, "%s answered with a redirect (status %d), which belfry does not follow: check the configured URLs", w.name, status)
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusForbidden && rateLimited(resp.Header):
		e := errs.New(errs.Unavailable, "%s has trouble (status %d); try again later", w.name, status)
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
func (w *web) away(ctx context.Context, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return errs.New(errs.Unavailable, "%s did not answer within %v; try again later", w.name, w.timeout)
	case ctx.Err() != nil:
		return errs.Wrap(ctx.Err(), errs.Canceled, "the login was given up while %s was asked", w.name)
	default:
		return &errs.Error{Kind: errs.Unavailable, Message: w.name + " can't be reached; try again later", Err: cause(err)}
	}
}

// cause is what may be logged of a failed request: other errors of net/http
// quote what the server sent.
func cause(err error) error {
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
func (w *web) get(ctx context.Context, client *http.Client, url string, header http.Header) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, errs.New(errs.Internal, "the profile's URL of %s is malformed", w.name)
	}
	req.Header = header.Clone()
	resp, err := client.Do(req)
	if err != nil {
		return nil, known(err, errs.New(errs.Unavailable, "%s can't be asked for the profile", w.name))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errs.New(errs.Invalid, "%s does not show the user's profile (status %d); begin again", w.name, resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}

// known returns the *errs.Error inside err, else otherwise. What a library
// says around it is dropped: that may quote URLs and replies.
func known(err error, otherwise *errs.Error) error {
	var e *errs.Error
	if errors.As(err, &e) {
		return e
	}
	return otherwise
}
