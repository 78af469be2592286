package httpkit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/problem"
	"belfry/pkg/store/policy"
)

const problemType = "application/problem+json"

// Problem is an RFC 9457 problem document. An error with a method Problem() Problem
// is replied with as that; Type has no prefix there, and Instance is set by the
// router.
type Problem struct {
	Type     string       `json:"type"`
	Title    string       `json:"title"`
	Status   int          `json:"status"`
	Detail   string       `json:"detail,omitempty"`
	Instance string       `json:"instance"` // the request's id
	Errors   []errs.Field `json:"errors,omitempty"`
	Rule     *DenyingRule `json:"rule,omitempty"` // only in development

	// Of a request whose user has to take a step first: see errs.StepUp.
	Step    string   `json:"step,omitempty"`
	MaxAge  *int     `json:"maxAge,omitempty"` // seconds
	Factors []string `json:"factors,omitempty"`
	Flow    string   `json:"flow,omitempty"`

	// Of a write that expected the object at another revision.
	Revision    string `json:"currentRevision,omitempty"`
	OnlyWorkers *bool  `json:"onlyWorkers,omitempty"` // nobody but belfry's workers has written it since
}

// DenyingRule is the rule of a store's policy that denies a request.
type DenyingRule struct {
	Operation  string `json:"operation"`
	Expression string `json:"expression,omitempty"` // none: the owner's rules
	Reason     string `json:"reason"`
}

func ruleOf(err error) *DenyingRule {
	var denial *policy.Denial
	if !errors.As(err, &denial) {
		return nil
	}
	return &DenyingRule{Operation: string(denial.Op), Expression: denial.Expression,
		Reason: cmp.Or(denial.Reason, "it is false")}
}

// ofKind returns the problem of an error kind.
func ofKind(kind errs.Kind) Problem {
	name := problem.Of(kind)
	p := Problem{Type: name.Type, Title: name.Title, Status: name.Status}
	if p.Status == http.StatusInternalServerError {
		p.Detail = "The server failed. Its log has the details under the request id in instance."
	}
	return p
}

// problemOf translates the error of a request to the problem to reply with.
func problemOf(x *Exchange, err error) Problem {
	var router *echo.HTTPError
	if errors.As(err, &router) && router.Code < http.StatusInternalServerError {
		return ofRouter(x, router.Code)
	}
	var own interface{ Problem() Problem }
	if errors.As(err, &own) {
		return own.Problem()
	}
	kind := errs.KindOf(err)
	if kind == errs.Canceled && (errors.Is(err, os.ErrDeadlineExceeded) || x.Request.Context().Err() != nil) {
		return Problem{
			Type: "timeout", Title: "The request took too long to arrive", Status: http.StatusRequestTimeout,
			Detail: "the request timed out before it was read and handled",
		}
	}
	p := ofKind(kind)
	var e *errs.Error
	if kind != errs.Internal && errors.As(err, &e) {
		p.Detail, p.Errors = e.Message, e.Fields
		if e.At != nil {
			p.Revision, p.OnlyWorkers = strconv.FormatUint(e.At.Now, 10), &e.At.OnlyWorkers
		}
	}
	if step := (*errs.StepUp)(nil); errors.As(err, &step) {
		p.challenge(step)
	}
	if x.router.development {
		p.Rule = ruleOf(err)
	}
	return p
}

// challenge makes a problem say which step is missing.
func (p *Problem) challenge(step *errs.StepUp) {
	p.Type, p.Title = "step-up-required", "Another step of the login is needed"
	p.Step, p.Factors, p.Flow = step.Step, step.Factors, step.Flow
	if step.Step == errs.StepReauthenticate {
		age := int(step.MaxAge.Seconds())
		p.MaxAge = &age
	}
}

// authenticate is the header WWW-Authenticate of an error (RFC 6750, RFC 9470), "" for none. Only what a token that was
// sent is to blame for has an error: a program must not take a request without one for a token that has expired.
func (x *Exchange) authenticate(status int, err error) string {
	token, sent := x.BearerToken()
	sent = sent && token != ""
	var step *errs.StepUp
	switch {
	case status == http.StatusForbidden && sent && errors.Is(err, sessions.ErrInsufficientScope):
		return `Bearer error="insufficient_scope"`
	case status != http.StatusUnauthorized:
		return ""
	case errors.As(err, &step):
		return challengeOf(step)
	case sent && errors.Is(err, sessions.ErrInvalidToken):
		return `Bearer error="invalid_token"`
	}
	return "Bearer"
}

func challengeOf(step *errs.StepUp) string {
	challenge := `Bearer error="insufficient_user_authentication", error_description="` + step.Step + `"`
	if step.AAL > 1 {
		challenge += `, acr_values="aal` + strconv.Itoa(step.AAL) + `"`
	}
	if step.Step == errs.StepReauthenticate {
		challenge += `, max_age="` + strconv.Itoa(int(step.MaxAge.Seconds())) + `"`
	}
	return challenge
}

// ofRouter translates the errors of echo's router.
func ofRouter(x *Exchange, status int) Problem {
	switch status {
	case http.StatusNotFound:
		p := ofKind(errs.NotFound)
		p.Detail = "nothing is exposed at this path"
		return p
	case http.StatusMethodNotAllowed:
		return NotAllowed{Methods: x.Header().Get(echo.HeaderAllow), Why: x.unexposed}.Problem()
	default: // echo has no other one
		p := ofKind(errs.Invalid)
		p.Title, p.Status = http.StatusText(status), status
		return p
	}
}

// fail replies with the problem document of an error, or its page for people, or cuts the connection when
// the reply has begun. The error itself is logged with the request.
func (x *Exchange) fail(err error) {
	x.err = err
	if x.status != 0 {
		x.aborted = true
		return
	}
	p := x.problem(err)
	status := p.Status
	if HasRetryAfter(status) {
		x.SetHeader("Retry-After", problem.RetryAfter(err))
	}
	if challenge := x.authenticate(status, err); challenge != "" {
		x.SetHeader("Www-Authenticate", challenge)
	}
	if x.refuse(p) {
		return
	}
	p.Type = problem.TypePrefix + p.Type
	x.SendProblem(status, problem.Encode(p))
}

// LinkHelp adds the header Link to a problem. It leads to what the documentation says about the problem's type, which
// has no prefix here. Where the documentation is not served there is no header.
func (x *Exchange) LinkHelp(typ string) {
	if page := x.router.help; page != "" && typ != "" {
		x.SetHeader("Link", "<"+x.base.Below(page)+"#"+typ+`>; rel="help"`)
	}
}

// typeOf returns the type of a problem document, without the prefix.
func typeOf(document []byte) string {
	const begins = `{"type":"` + problem.TypePrefix // as Encode writes it
	if rest, ok := bytes.CutPrefix(document, []byte(begins)); ok {
		typ, _, _ := bytes.Cut(rest, []byte(`"`))
		return string(typ)
	}
	var p struct { // it was stored
		Type string `json:"type"`
	}
	_ = json.Unmarshal(document, &p) // belfry made it
	return strings.TrimPrefix(p.Type, problem.TypePrefix)
}

// problem returns the problem that an error is replied with, its type without the prefix.
func (x *Exchange) problem(err error) Problem {
	p := problemOf(x, err)
	p.Instance = x.ID
	return p
}

// Problem returns the status and the problem document that an error is replied with.
func (x *Exchange) Problem(err error) (status int, document []byte) {
	p := x.problem(err)
	p.Type = problem.TypePrefix + p.Type
	return p.Status, problem.Encode(p)
}

// ProblemOfPart is Problem of an error that a part of the request has, an operation of a batch or a line of a stream:
// the request itself succeeds, so why the server failed is logged here. It is safe for concurrent use.
func (x *Exchange) ProblemOfPart(number int, err error) (status int, document []byte) {
	status, document = x.Problem(err)
	if status == http.StatusInternalServerError {
		x.Log(slog.LevelError, "a part of a request failed",
			append([]slog.Attr{slog.Int("part", number)}, errs.Attributes(err)...)...)
	}
	return status, document
}

// HasRetryAfter reports whether problems of a status have the header Retry-After.
func HasRetryAfter(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// SendProblem replies with a problem document.
func (x *Exchange) SendProblem(status int, document []byte) {
	if status == http.StatusUnauthorized && x.Header()["Www-Authenticate"] == nil {
		x.SetHeader("Www-Authenticate", "Bearer")
	}
	x.SetHeader("Cache-Control", NoStore)
	if x.router.help != "" {
		x.LinkHelp(typeOf(document))
	}
	x.Send(status, problemType, document)
}

// NotAllowed is the error of a method that a path does not have.
type NotAllowed struct {
	Methods string // those that it has
	// the configuration leaves the method out: what is not exposed, and by which key; "" if it never exists
	Why string
}

// Error implements error.
func (n NotAllowed) Error() string {
	if n.Why != "" {
		return n.Why + "; this path takes " + n.Methods
	}
	return "this path takes " + n.Methods
}

// Problem is the problem document that the error is replied with.
func (n NotAllowed) Problem() Problem {
	return Problem{Type: "method-not-allowed", Title: "Method not allowed", Status: http.StatusMethodNotAllowed,
		Detail: n.Error()}
}
