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
	fieldLinks    = "_user" // whose account the way in is to be linked to; absent for a mere login
)

// flowOf is the uuid of a visit by what the provider gives back: the state, or
// the request token of OAuth 1.
func flowOf(returned string) string {
	sum := sha256.Sum256([]byte(returned))
	return "flow-" + hex.EncodeToString(sum[:])
}

// flowName is what of a visit's uuid is in the name of its cookie.
func flowName(uuid string) string { return uuid[len("flow-"):][:12] }

// verifier is the visit's PKCE verifier. It is made of what only the browser
// holds, so that nothing of use is kept.
func verifier(secret string) string { return digest("verifier:" + secret) }

// Begin begins a visit to a provider. While someone is logged in it is to link
// a further way in to their account; linking false makes it a mere login.
func (s *Service) BeginOAuth(ctx context.Context, provider string, linking bool, from Client) (Flow, error) {
	p := s.providers[provider]
	if p == nil {
		return Flow{}, errs.New(errs.NotFound, "no provider %q is configured", provider)
	}
	if err := s.limiter.spend(from.Address); err != nil {
		return Flow{}, err
	}
	ctx = own(ctx, "")
	state, secret := newSecret(), newSecret()
	start, err := p.Begin(ctx, oauth.AuthRequest{CallbackURL: s.baseURL + CallbackPath, State: state, Verifier: verifier(secret)})
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
		flow.Set(fieldLinks, from.Session.User.UUID)
	}
	uuid := flowOf(returned)
	if _, err := s.tokens.Save(ctx, flow, uuid); err != nil {
		return Flow{}, err
	}
	return Flow{URL: start.URL, Name: flowName(uuid), Secret: secret}, nil
}

// FlowName is the name of the visit that a callback belongs to, "" when its
// query names none.
func FlowName(query url.Values) string {
	if returned := returnedBy(query); returned != "" {
		return flowName(flowOf(returned))
	}
	return ""
}

func returnedBy(query url.Values) string {
	for _, name := range [...]string{"state", "oauth_token", "denied"} {
		if value := query.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// badState says that a callback belongs to no visit of this browser.
func badState() error {
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
func (s *Service) FinishOAuth(ctx context.Context, query url.Values, secret string, from Client) (in IssuedSession, provider string, err error) {
	flow, err := s.takeFlow(ctx, query, secret)
	if err != nil {
		return in, "", err
	}
	provider, _ = flow.Text(fieldProvider)
	p := s.providers[provider]
	if p == nil {
		return in, provider, badState() // it was configured when the visit began
	}
	kept, _ := flow.Text(fieldSecret)
	who, err := p.Finish(own(ctx, ""), oauth.Callback{
		CallbackURL: s.baseURL + CallbackPath, Query: query, Verifier: verifier(secret), Secret: kept,
	})
	if err != nil {
		return in, provider, err
	}
	w := way{id: who.ID, kind: provider, profile: who.Profile, validated: true}
	if user, linking := flow.Text(fieldLinks); linking {
		in, err = s.addWay(ctx, w, user, from)
	} else {
		in, err = s.enter(ctx, w, from)
	}
	if err == nil {
		s.limiter.refund(from.Address) // what Begin took
	}
	return in, provider, err
}

// takeFlow finds a visit and ends it: a callback is good once.
func (s *Service) takeFlow(ctx context.Context, query url.Values, secret string) (object.Object, error) {
	ctx = own(ctx, "")
	returned := returnedBy(query)
	if returned == "" || secret == "" {
		return nil, badState()
	}
	stored, err := s.tokens.Get(ctx, flowOf(returned))
	if err != nil {
		if errors.Is(err, errs.NotFound) {
			err = badState()
		}
		return nil, err
	}
	flow, err := stored.Object()
	if err != nil {
		return nil, err
	}
	if browser, _ := flow.Text(fieldBrowser); !isSecret(secret, browser) {
		return nil, badState() // it stays, for the browser that it belongs to
	}
	err = s.tokens.Delete(ctx, stored.UUID, stored.Revision)
	switch {
	case errors.Is(err, errs.NotFound) || errors.Is(err, errs.Mismatch):
		return nil, badState()
	case err == nil && !s.now().Before(moment(flow, fieldExpires)):
		return nil, badState()
	}
	return flow, err
}

// addWay links a way in to the user who began the visit and is logged in still.
func (s *Service) addWay(ctx context.Context, w way, user string, from Client) (IssuedSession, error) {
	if from.Session == nil || from.Session.User.UUID != user {
		return IssuedSession{}, badState()
	}
	return IssuedSession{Session: *from.Session}, s.link(ctx, w, from.Session)
}

// enter logs in the user of a way in, who is made when there is none.
func (s *Service) enter(ctx context.Context, w way, from Client) (IssuedSession, error) {
	for range maxClaims {
		user, ident, err := s.owner(own(ctx, ""), w)
		if err != nil {
			return IssuedSession{}, err
		}
		if user.UUID != "" {
			in, err := s.issue(ctx, user, w.kind, from)
			if err == nil {
				s.later(own(ctx, user.UUID), "a login", func(ctx context.Context) error { return s.used(ctx, ident.UUID, w.profile) })
			}
			return in, err
		}
		n := newcomer{way: w, fields: object.Object{}, datas: w.profile}
		if err := s.screen(ctx, &n); err != nil {
			return IssuedSession{}, err
		}
		user, err = s.register(ctx, n)
		if errors.Is(err, errs.Exists) {
			continue // a second tab was faster
		}
		if err != nil {
			return IssuedSession{}, err
		}
		return s.issue(ctx, user, w.kind, from)
	}
	return IssuedSession{}, contended()
}
