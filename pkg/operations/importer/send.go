package importer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// Retries while the server is unavailable or throttles.
const (
	maxTries = 12 // without any reply to other requests in the meantime: about a minute
	minDelay = 250 * time.Millisecond
	maxDelay = 10 * time.Second
)

// sender sends objects to the server.
type sender struct {
	client *http.Client
	url    string // of the collection
	token  string // "": anonymous
	update bool

	answers atomic.Int64 // replies that were not retryable
	pause   pause
}

// outcome is the outcome of sending an object.
type outcome uint8

const (
	created outcome = iota
	updated
	existing // it existed and was not changed
)

// send creates an object, or updates the existing one. The error is a *reply when the
// server refuses the object; any other error ends the import.
func (s *sender) send(ctx, request context.Context, uuid string, body []byte) (outcome, error) {
	r, err := s.ask(ctx, request, http.MethodPost, s.url, body)
	switch {
	case err != nil:
		return 0, err
	case r.success():
		return created, nil
	case r.exists() && !s.update:
		return existing, nil
	case r.exists():
		r, err = s.ask(ctx, request, http.MethodPut, s.url+"/"+url.PathEscape(uuid), body)
		if err == nil && !r.success() {
			err = r
		}
		return updated, err
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed, r.status/100 == 3:
		return 0, errs.New(errs.NotFound, "objects can't be created at %s: %s", s.url, r.Error())
	}
	return 0, r
}

// ask retries a request until it gets a reply that is not retryable. All attempts send
// the same object under the same UUID, so they are idempotent. It waits with ctx and
// sends with request, which ends later: requests in flight at an interruption still get
// their replies.
func (s *sender) ask(ctx, request context.Context, method, url string, body []byte) (*reply, error) {
	for try := 1; ; try++ {
		if err := s.pause.wait(ctx); err != nil {
			return nil, err
		}
		before := s.answers.Load()
		r, err := s.once(request, method, url, body)
		if err == nil && !r.retryable() {
			s.answers.Add(1)
			return r, nil
		}
		if request.Err() != nil {
			return nil, context.Cause(request)
		}
		if before == 0 && unreachable(err) {
			return nil, errs.Wrap(err, errs.Unavailable,
				"no server responds at %s: check --url and that belfry is running", s.url)
		}
		if s.answers.Load() != before {
			try = 1 // the server replies to other requests
		}
		if try >= maxTries {
			return nil, errGaveUp(s.url, r, err)
		}
		if err := s.delay(ctx, try, r); err != nil {
			return nil, err
		}
	}
}

// unreachable reports whether an error suggests a wrong address rather than a temporary
// outage.
func unreachable(err error) bool {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &certificate)
}

func errGaveUp(url string, r *reply, err error) error {
	if err == nil {
		return errs.New(errs.Unavailable, "gave up after %d tries at %s: %s", maxTries, url, r.Error())
	}
	return errs.Wrap(err, errs.Unavailable, "gave up after %d tries at %s", maxTries, url)
}

// delay waits before the next attempt. A Retry-After of the server applies to all
// workers.
func (s *sender) delay(ctx context.Context, try int, r *reply) error {
	d := backoff.Delay(try, minDelay, maxDelay)
	if r != nil && r.after > 0 {
		s.pause.extend(max(d, r.after))
		return nil
	}
	return s.pause.clock.sleep(ctx, d)
}

func (s *sender) once(ctx context.Context, method, url string, body []byte) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return readReply(res, s.pause.clock.now())
}

// reply is a reply of the server. As an error it says why an object was refused.
type reply struct {
	status int
	after  time.Duration // Retry-After; 0 without it
	kind   string        // type of the problem
	detail string
	fields []errs.Field
}

// maxProblem is the maximum size of a problem document.
const maxProblem = 64 << 10

// maxDrained is how much of a body is read so that the connection can be reused.
const maxDrained = 1 << 20

func readReply(res *http.Response, now time.Time) (*reply, error) {
	r := &reply{status: res.StatusCode}
	if r.success() {
		_, err := io.Copy(io.Discard, io.LimitReader(res.Body, maxDrained))
		return r, err
	}
	r.after = retryAfter(res.Header.Get("Retry-After"), now)
	text, err := io.ReadAll(io.LimitReader(res.Body, maxProblem))
	if err != nil {
		return nil, err
	}
	var problem struct {
		Type, Title, Detail string
		Errors              []errs.Field
	}
	if json.Unmarshal(text, &problem) == nil {
		r.kind, r.detail, r.fields = problem.Type, problem.Detail, problem.Errors
		if r.detail == "" {
			r.detail = problem.Title
		}
	}
	if r.detail == "" {
		r.detail = http.StatusText(r.status)
	}
	if to := res.Header.Get("Location"); to != "" && r.status/100 == 3 {
		r.detail = "it moved to " + to
	}
	return r, nil
}

func (r *reply) Error() string { return r.detail + " (" + strconv.Itoa(r.status) + ")" }

func (r *reply) success() bool { return r.status/100 == 2 }

// exists reports whether an object with the UUID exists.
func (r *reply) exists() bool {
	return r.status == http.StatusConflict && !r.contended() && !r.taken()
}

// taken reports whether another object has a value that must be unique.
func (r *reply) taken() bool {
	return r.status == http.StatusConflict && strings.HasSuffix(r.kind, ":taken")
}

// contended reports whether the object was changed concurrently too often.
func (r *reply) contended() bool {
	return r.status == http.StatusConflict && strings.HasSuffix(r.kind, ":conflict")
}

// retryable reports whether a later attempt may have another result.
func (r *reply) retryable() bool {
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return r.contended()
}

// retryAfter parses a Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// failure returns a refusal as the failure of an item.
func (r *reply) failure(it *item, uuid string) *Failure {
	return &Failure{Position: it.at, UUID: uuid, Status: r.status, Message: r.detail, Fields: r.fields}
}
