package importer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"belfry/pkg/errs"
)

// Waiting for a server that is away or asks for patience.
const (
	maxTries    = 12 // without any object being answered meanwhile: about a minute
	firstDelay  = 250 * time.Millisecond
	longestStep = 10 * time.Second
)

// sender gets objects to the server.
type sender struct {
	client *http.Client
	url    string // of the collection
	token  string // "": nobody's
	update bool

	answers atomic.Int64 // replies that were no call for patience
	pause   pause
}

// outcome is what became of an object.
type outcome uint8

const (
	created outcome = iota
	updated
	present // it was there, and is as it was
)

// send creates an object, or updates the one that is there. The error is
// a *reply for what the server refuses; any other one ends the import.
func (s *sender) send(ctx, request context.Context, uuid string, body []byte) (outcome, error) {
	r, err := s.ask(ctx, request, http.MethodPost, s.url, body)
	switch {
	case err != nil:
		return 0, err
	case r.good():
		return created, nil
	case r.taken() && !s.update:
		return present, nil
	case r.taken():
		r, err = s.ask(ctx, request, http.MethodPut, s.url+"/"+url.PathEscape(uuid), body)
		if err == nil && !r.good() {
			err = r
		}
		return updated, err
	case r.status == http.StatusNotFound, r.status == http.StatusMethodNotAllowed, r.status/100 == 3:
		return 0, errs.New(errs.NotFound, "nothing can be created at %s: %s", s.url, r.Error())
	}
	return 0, r
}

// ask repeats a request until the server has an answer. Every try is of the
// same object under the same uuid, so none can have effect twice. It waits in
// ctx and sends in request, which lasts longer: what is on its way when an
// import is interrupted still gets its answer.
func (s *sender) ask(ctx, request context.Context, method, url string, body []byte) (*reply, error) {
	for try := 1; ; try++ {
		if err := s.pause.wait(ctx); err != nil {
			return nil, err
		}
		before := s.answers.Load()
		r, err := s.once(request, method, url, body)
		if err == nil && !r.passing() {
			s.answers.Add(1)
			return r, nil
		}
		if request.Err() != nil {
			return nil, context.Cause(request)
		}
		if before == 0 && unreachable(err) {
			return nil, errs.Wrap(err, errs.Unavailable, "nobody answers at %s; is belfry serving there? (--url says where)", s.url)
		}
		if s.answers.Load() != before {
			try = 1 // others are being served: so will this one
		}
		if try >= maxTries {
			return nil, gaveUp(s.url, r, err)
		}
		if err := s.delay(ctx, try, r); err != nil {
			return nil, err
		}
	}
}

// unreachable reports whether an error looks like the wrong address rather than
// a server that is away for a while.
func unreachable(err error) bool {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &dial) && dial.Op == "dial" || errors.As(err, &certificate)
}

func gaveUp(url string, r *reply, err error) error {
	if err == nil {
		return errs.New(errs.Unavailable, "gave up after %d tries at %s: %s", maxTries, url, r.Error())
	}
	return errs.Wrap(err, errs.Unavailable, "gave up after %d tries at %s", maxTries, url)
}

// delay waits longer from try to try. What the server itself asks for is
// asked of everybody.
func (s *sender) delay(ctx context.Context, try int, r *reply) error {
	d := min(firstDelay<<(try-1), longestStep)
	d = d/2 + rand.N(d/2) //nolint:gosec // spreads requests, keeps no secret
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

// reply is what the server answered. As an error it says why an object is refused.
type reply struct {
	status int
	after  time.Duration // Retry-After; 0 when there is none
	kind   string        // type of the problem
	detail string
	fields []errs.Field
}

// maxProblem is how much of a problem is read; of other replies nothing is.
const maxProblem = 64 << 10

// maxDrained is how much of a reply is read just to keep its connection.
const maxDrained = 1 << 20

func readReply(res *http.Response, now time.Time) (*reply, error) {
	r := &reply{status: res.StatusCode}
	if r.good() {
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
		r.detail = "it is now at " + to
	}
	return r, nil
}

func (r *reply) Error() string { return r.detail + " (" + strconv.Itoa(r.status) + ")" }

func (r *reply) good() bool { return r.status/100 == 2 }

// taken reports whether there is an object of this uuid.
func (r *reply) taken() bool {
	return r.status == http.StatusConflict && !r.contended()
}

// contended reports whether others changed the object too often meanwhile.
func (r *reply) contended() bool {
	return r.status == http.StatusConflict && strings.HasSuffix(r.kind, ":conflict")
}

// passing reports whether the same request may be answered otherwise later.
func (r *reply) passing() bool {
	switch r.status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return r.contended()
}

// retryAfter reads the header of that name: seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// failure is a refusal as what is reported of an object.
func (r *reply) failure(it *item, uuid string) *Failure {
	return &Failure{Position: it.at, UUID: uuid, Status: r.status, Message: r.detail, Fields: r.fields}
}
