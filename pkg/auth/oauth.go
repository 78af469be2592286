package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"time"

	"belfry/pkg/auth/oauth"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// FlowLasts is how long a visit to a provider may take.
const FlowTTL = 10 * time.Minute

// Flow is a visit to a provider that has begun.
type Flow struct {
	URL    string // where to send the browser
	Name   string // tells this visit's cookie from those of others under way
	Secret string // for the cookie: it binds the visit to the browser
}

// CallbackPath is where every provider sends the browser back to.
const CallbackPath = "/auth/callback"

// Fields of the object that the store of tokens holds for a visit.
const (
	fieldProvider = "provider"
	fieldBrowser  = "_browser"
	fieldSecret   = "_secret"
	fieldLinkUser = "_user" // whose account the way in is to be linked to; absent for a mere login
)

// flowOf is the uuid of a visit by what the provider gives back: the state, or
// the request token of OAuth 1.
func flowUUID(returned string) string {
	sum := sha256.Sum256([]byte(returned))
	return "flow-" + hex.EncodeToString(sum[:])
}

// flowName is what of a visit's uuid is in the name of its cookie.
func flowName(uuid string) string { return uuid[len("flow-"):][:12] }

// verifier is the visit's PKCE verifier. It is made of what only the browser
// holds, so that nothing of use is kept.
func pkceVerifier(secret string) string { return digest("verifier:" + secret) }

// Begin begins a visit to a provider. While someone is logged in it is to link
// a further way in to their account; linking false makes it a mere login.
func (s *Service) BeginOAuth(ctx context.Context, provider string, linking bool, from Client) (Flow, error) {
	p := s.providers[provider]
	if p == nil {
		return Flow{}, errs.New(errs.NotFound, "no provider %q is configured", provider)
	}
	if err := s.takeAttempt(from); err != nil {
		return Flow{}, err
	}
	ctx = asService(ctx, "")
	state, secret := newSecret(), newSecret()
	start, err := p.Begin(ctx, oauth.AuthRequest{CallbackURL: s.baseURL + CallbackPath, State: state, Verifier: pkceVerifier(secret)})
	if err != nil {
		return Flow{}, err
	}
	returned := state
	if start.Token != "" {
		returned = start.Token
	}
	flow := object.Object{}
	flow.Set(fieldProvider, provider)
	flow.Set(fieldExpires, timestamp(s.now().Add(FlowTTL)))
	flow.Set(fieldBrowser, digest(secret))
	if start.Secret != "" {
		flow.Set(fieldSecret, start.Secret)
	}
	if linking && from.Session != nil {
		flow.Set(fieldLinkUser, from.Session.User.UUID)
	}
	uuid := flowUUID(returned)
	if _, err := s.tokens.Save(ctx, flow, uuid); err != nil {
		return Flow{}, err
	}
	return Flow{URL: start.URL, Name: flowName(uuid), Secret: secret}, nil
}

// FlowName is the name of the visit that a callback belongs to, "" when its
// query names none.
func FlowName(query url.Values) string {
	if returned := flowKey(query); returned != "" {
		return flowName(flowUUID(returned))
	}
	return ""
}

func flowKey(query url.Values) string {
	for _, name := range [...]string{"state", "oauth_token", "denied"} {
		if value := query.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// badState says that a callback belongs to no visit of this browser.
func errBadState() error {
	return errs.New(errs.Mismatch, "this login was not begun here, has been finished, or took too long")
}

// Return is the browser's return from a provider, with the secret that the
// visit's cookie holds. It logs in whoever came back: a known user or a new one.
// A visit that was to link leaves the session as it is, and issues no token:
// another visit may be under way in it.
//
// Errors: Mismatch when the visit is not this browser's, is over or has
// expired; Denied when the user refused, or the way in cannot be told from
// another's; Exists when it belongs to another user; Invalid when the provider's
// answer can't be used or the user schema refuses the user; Unavailable.
func (s *Service) FinishOAuth(ctx context.Context, query url.Values, secret string, from Client) (session IssuedSession, provider string, err error) {
	flow, err := s.consumeFlow(ctx, query, secret)
	if err != nil {
		return session, "", err
	}
	provider, _ = flow.Text(fieldProvider)
	p := s.providers[provider]
	if p == nil {
		return session, provider, errBadState() // it was configured when the visit began
	}
	kept, _ := flow.Text(fieldSecret)
	found, err := p.Finish(asService(ctx, ""), oauth.Callback{
		CallbackURL: s.baseURL + CallbackPath, Query: query, Verifier: pkceVerifier(secret), Secret: kept,
	})
	if err != nil {
		return session, provider, err
	}
	who := identity{providerID: found.ID, provider: provider, profile: found.Profile, validated: true}
	if user, linking := flow.Text(fieldLinkUser); linking {
		session, err = s.linkProvider(ctx, who, user, from)
	} else {
		session, err = s.loginOrRegister(ctx, who, from)
	}
	if err == nil {
		s.returnAttempt(from) // what Begin took
	}
	return session, provider, err
}

// takeFlow finds a visit and ends it: a callback is good once.
func (s *Service) consumeFlow(ctx context.Context, query url.Values, secret string) (object.Object, error) {
	ctx = asService(ctx, "")
	returned := flowKey(query)
	if returned == "" || secret == "" {
		return nil, errBadState()
	}
	stored, err := s.tokens.Get(ctx, flowUUID(returned))
	if err != nil {
		if errors.Is(err, errs.NotFound) {
			err = errBadState()
		}
		return nil, err
	}
	flow, err := stored.Object()
	if err != nil {
		return nil, err
	}
	if browser, _ := flow.Text(fieldBrowser); !secretMatches(secret, browser) {
		return nil, errBadState() // it stays, for the browser that it belongs to
	}
	err = s.tokens.Delete(ctx, stored.UUID, stored.Revision)
	switch {
	case errors.Is(err, errs.NotFound) || errors.Is(err, errs.Mismatch):
		return nil, errBadState()
	case err == nil && !s.now().Before(timeField(flow, fieldExpires)):
		return nil, errBadState()
	}
	return flow, err
}

// addWay links a way in to the user who began the visit and is logged in still.
func (s *Service) linkProvider(ctx context.Context, who identity, user string, from Client) (IssuedSession, error) {
	if from.Session == nil || from.Session.User.UUID != user {
		return IssuedSession{}, errBadState()
	}
	return IssuedSession{Session: *from.Session}, s.linkIdent(ctx, who, from.Session)
}

// enter logs in the user of a way in, who is made when there is none.
func (s *Service) loginOrRegister(ctx context.Context, who identity, from Client) (IssuedSession, error) {
	for range maxAttempts {
		user, ident, err := s.findOwner(asService(ctx, ""), who)
		if err != nil {
			return IssuedSession{}, err
		}
		if user.UUID != "" {
			session, err := s.startSession(ctx, user, who.provider, from)
			if err == nil {
				s.runInBackground(asService(ctx, user.UUID), "a login", func(ctx context.Context) error { return s.recordUseIfPresent(ctx, ident.UUID, who.profile) })
			}
			return session, err
		}
		reg := registration{identity: who, fields: object.Object{}, datas: who.profile}
		if err := s.interceptRegistration(ctx, &reg); err != nil {
			return IssuedSession{}, err
		}
		user, err = s.createUser(ctx, reg)
		if errors.Is(err, errs.Exists) {
			continue // a second tab was faster
		}
		if err != nil {
			return IssuedSession{}, err
		}
		return s.startSession(ctx, user, who.provider, from)
	}
	return IssuedSession{}, errContention()
}
