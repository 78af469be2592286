package login

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
	"belfry/pkg/problem"
)

// token exchanges the code of an application for the token of a session (RFC 6749, section 4.1.3). No cookie is
// set: the session is the application's.
func (h byProvider) token(x *httpkit.Exchange) error {
	session, err := h.exchange(x)
	var protocol *applications.ProtocolError
	var invalid *errs.Error
	switch {
	case errors.Is(err, sessions.ErrDisabled):
		return h.sendProtocolError(x, err, applications.InvalidGrant, "this account is disabled", nil)
	case errors.As(err, &protocol):
		return h.sendProtocolError(x, err, protocol.Code, protocol.Description, nil)
	case errs.KindOf(err) == errs.Invalid && errors.As(err, &invalid):
		return h.sendProtocolError(x, err, applications.InvalidRequest, invalid.Message, invalid.Fields)
	case err != nil:
		return err
	}
	x.SetHeader("Pragma", "no-cache")
	switch issued, err := h.issuedIfPreferred(x, false, session); {
	case err != nil:
		return err
	case issued != nil:
		return x.SendJSON(issued)
	}
	return x.SendJSON(granted{AccessToken: session.Token, TokenType: "Bearer",
		ExpiresIn: int(time.Until(session.Expires).Seconds())})
}

// granted is the reply to an exchange, of RFC 6749, section 5.1.
type granted struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
}

// tokenForm is the request of RFC 6749, section 4.1.3.
type tokenForm struct {
	op.Input
	Grant    string `form:"grant_type,required" only:"authorization_code"`
	Code     string `form:"code,required" doc:"The value of the login request."`
	Redirect string `form:"redirect_uri,required" doc:"The value of the login request."`
	Verifier string `form:"code_verifier,required" doc:"43 to 128 characters, whose SHA-256 was code_challenge."`
	Client   string `form:"client_id" doc:"The client_id of the login request, if it had one."`

	Others object.Object `form:"*"` // which are ignored
}

func (h byProvider) exchange(x *httpkit.Exchange) (none sessions.Issued, err error) {
	in, err := op.Read[tokenForm](x, op.IsHTML(x))
	if err != nil {
		return none, err
	}
	for _, name := range in.Repeated { // other parameters are ignored, also repeated ones, such as resource (RFC 8707)
		if _, other := in.Others[name]; !other {
			return none, errs.New(errs.Invalid, "the body has %s more than once (RFC 6749, section 3.2)", name)
		}
	}
	if in.Grant != "authorization_code" {
		return none, &applications.ProtocolError{Code: applications.UnsupportedGrantType,
			Description: "grant_type must be authorization_code"}
	}
	name, err := clientOf(x.Request, in.Client)
	if err != nil {
		return none, err
	}
	client, err := h.client(x)
	if err != nil {
		return none, err
	}
	return h.service.Applications.Exchange(x.Context(),
		applications.Exchange{Code: in.Code, Redirect: in.Redirect, Verifier: in.Verifier, Client: name}, client)
}

// clientOf returns the client_id of an exchange, from the body or from HTTP Basic (RFC 6749, section 2.3.1), which many
// libraries try first. There are no client secrets, so the password of Basic has to be empty. An error of the client's
// authentication does not use up the code, so the client can try another method.
func clientOf(r *http.Request, inBody string) (string, error) {
	headers := r.Header["Authorization"]
	if len(headers) == 0 {
		return inBody, nil
	}
	if len(headers) > 1 {
		return "", errs.New(errs.Invalid, "the request has more than one header Authorization")
	}
	scheme, _, _ := strings.Cut(headers[0], " ")
	if strings.EqualFold(scheme, "Bearer") {
		return inBody, nil // the token of a session, which a login may have
	}
	id, secret, ok := r.BasicAuth()
	if !ok {
		return "", invalidClient("Authorization must be Basic, with client_id and an empty password, or absent")
	}
	id, err := url.QueryUnescape(id)
	if err != nil || !utf8.ValidString(id) {
		return "", invalidClient("the client_id in Authorization must be UTF-8 text, encoded as in a form (RFC 6749, " +
			"section 2.3.1)")
	}
	switch {
	case secret != "":
		return "", invalidClient("belfry has no client secrets: the password in Authorization must be empty")
	case inBody != "" && inBody != id:
		return "", errs.New(errs.Invalid,
			"client_id in the body differs from the one in Authorization: send only one of them, or the same")
	}
	return id, nil
}

func invalidClient(description string) error {
	return &applications.ProtocolError{Code: applications.InvalidClient, Description: description}
}

// protocolProblem is a problem document that is an error of RFC 6749, section 5.2, as well.
type protocolProblem struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	httpkit.Problem
}

// sendProtocolError replies with an error of the protocol. Its media type is that of RFC 6749, which libraries require.
func (h byProvider) sendProtocolError(x *httpkit.Exchange, err error, code, description string,
	fields []errs.Field) error {
	name := problem.Of(errs.Invalid)
	if code == applications.InvalidClient {
		name = problem.Of(errs.Unauthenticated)
		x.SetHeader("Www-Authenticate", `Basic realm="belfry", charset="UTF-8"`)
	}
	x.RecordError(err)
	x.SetHeader("Cache-Control", httpkit.NoStore)
	x.LinkHelp(name.Type)
	x.Send(name.Status, httpkit.JSON,
		problem.Encode(protocolProblem{Error: code, Description: description, Problem: httpkit.Problem{
			Type: problem.TypePrefix + name.Type, Title: name.Title, Status: name.Status, Detail: description,
			Instance: x.ID, Errors: fields,
		}}))
	return nil
}
