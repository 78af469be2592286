package login

import (
	"errors"
	"time"

	"belfry/pkg/api/kit"
	"belfry/pkg/api/problem"
	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// token exchanges the code of an application for the token of a session (RFC 6749, section 4.1.3). No cookie is
// set: the session is the application's.
func (h *handler) token(x *kit.Exchange) error {
	f, err := readForm(x)
	if err != nil {
		return err
	}
	session, err := h.exchange(x, f)
	var protocol *auth.ProtocolError
	switch {
	case errors.Is(err, auth.ErrDisabled):
		return h.sendProtocolError(x, err, auth.InvalidGrant, "this account is disabled")
	case errors.As(err, &protocol):
		return h.sendProtocolError(x, err, protocol.Code, protocol.Description)
	case err != nil:
		return err
	}
	x.SetHeader("Pragma", "no-cache")
	if x.PrefersRepresentation() {
		ctx, err := h.calls.Client(x)
		if err != nil {
			return err
		}
		return h.sendIssued(ctx, x, session)
	}
	return x.SendJSON(granted{AccessToken: session.Token, TokenType: "Bearer", ExpiresIn: int(time.Until(session.Expires).Seconds())})
}

// granted is the reply to an exchange, of RFC 6749, section 5.1.
type granted struct {
	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"` // seconds
}

func (h *handler) exchange(x *kit.Exchange, f form) (auth.IssuedSession, error) {
	values, err := f.take("grant_type", "code", "redirect_uri", "code_verifier", "client_id")
	if err != nil {
		return auth.IssuedSession{}, err
	}
	if values[0] != "authorization_code" {
		return auth.IssuedSession{}, &auth.ProtocolError{Code: auth.UnsupportedGrantType, Description: "grant_type has to be authorization_code"}
	}
	client, err := h.client(x)
	if err != nil {
		return auth.IssuedSession{}, err
	}
	return h.service.ExchangeCode(x.Context(), auth.CodeExchange{Code: values[1], Redirect: values[2], Verifier: values[3], Client: values[4]}, client)
}

// protocolProblem is a problem document that is an error of RFC 6749, section 5.2, as well.
type protocolProblem struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	kit.Problem
}

// sendProtocolError replies with an error of the protocol. Its media type is the one that RFC 6749
// demands, which libraries insist on.
func (h *handler) sendProtocolError(x *kit.Exchange, err error, code, description string) error {
	name := problem.Of(errs.Invalid)
	x.RecordError(err)
	x.SetHeader("Cache-Control", kit.NoStore)
	x.Send(name.Status, kit.JSON, problem.Encode(protocolProblem{Error: code, Description: description, Problem: kit.Problem{
		Type: problem.TypePrefix + name.Type, Title: name.Title, Status: name.Status, Detail: description, Instance: x.ID,
	}}))
	return nil
}
