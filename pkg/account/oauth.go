package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"belfry/pkg/account/oauth"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// FlowTTL is how long a login at a provider may take.
const FlowTTL = 10 * time.Minute

// Flow is an OAuth authorization in progress.
type Flow struct {
	URL    string // to redirect the browser to
	Name   string // distinguishes the cookies of concurrent flows
	Secret string // value of the cookie: binds the flow to the browser
}

// CallbackPath is the path of the redirect URI of all providers.
const CallbackPath = "/auth/callback"

// flowUUID is the uuid of a flow by the parameter of the callback that identifies
// it: the state, or the request token of OAuth 1.
func flowUUID(key string) string { return record.KindFlow + secret.Hex(key) }

// flowName is the part of a flow's uuid that is in the name of its cookie.
func flowName(uuid string) string { return uuid[len(record.KindFlow):][:12] }

// pkceVerifier is the PKCE verifier of a flow. It is derived from the secret that
// only the browser has, so that the store of tokens holds none.
func pkceVerifier(of string) string { return secret.Digest("verifier:" + of) }

// BeginOAuth starts a flow. With linking, while somebody is logged in, it links
// the identity to their account; otherwise it is a login.
func (s *Service) BeginOAuth(ctx context.Context, provider string, linking bool, from Client) (Flow, error) {
	p := s.providers[provider]
	if p == nil {
		return Flow{}, errs.New(errs.NotFound, "no provider %q is configured", provider)
	}
	if err := s.guesses.Take(from.Address); err != nil {
		return Flow{}, err
	}
	ctx = record.AsService(ctx, "")
	state, browser := secret.New(), secret.New()
	redirect, err := p.Begin(ctx, oauth.AuthRequest{CallbackURL: s.base.At(CallbackPath), State: state, Verifier: pkceVerifier(browser)})
	if err != nil {
		return Flow{}, err
	}
	key := state
	if redirect.Token != "" {
		key = redirect.Token
	}
	flow := record.Token{
		FlowProvider: provider, Expires: s.now().Add(FlowTTL), Browser: secret.Digest(browser), Secret: redirect.Secret, Application: from.Application,
	}
	if linking && from.Session != nil && from.Application == nil {
		if err := s.requireFresh(ctx, from.Session); err != nil {
			return Flow{}, err
		}
		flow.User = from.Session.User.UUID
	}
	uuid := flowUUID(key)
	if _, err := s.db.Tokens.Create(ctx, uuid, flow); err != nil {
		return Flow{}, err
	}
	return Flow{URL: redirect.URL, Name: flowName(uuid), Secret: browser}, nil
}

// FlowName is the name of the flow that a callback belongs to, "" when its query
// identifies none.
func FlowName(query url.Values) string {
	if key := flowKey(query); key != "" {
		return flowName(flowUUID(key))
	}
	return ""
}

// flowKey returns the parameter of a callback that identifies its flow.
func flowKey(query url.Values) string {
	for _, name := range [...]string{"state", "oauth_token", "denied"} {
		if value := query.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// errBadState is returned for a callback that belongs to no flow of this browser.
func errBadState() error {
	return errs.New(errs.Mismatch, "this login was not begun here, has been finished, or took too long")
}

// FinishOAuth handles the callback of a provider, with the secret in the flow's
// cookie. It logs in the user of the identity, who is created if necessary. A
// flow that links an identity keeps the session and issues no token: another
// flow may be in progress in it. A flow for an application issues a code, and leaves
// the session of the browser alone.
//
// Errors: Mismatch when the flow is not this browser's, is finished, with a Repetition if it has succeeded, or has
// expired; Denied when the user refused, or the identity cannot be distinguished
// from another; Exists when it belongs to another user; Invalid when the
// provider's reply can't be used or the user schema refuses the user; Unavailable.
func (s *Service) FinishOAuth(ctx context.Context, query url.Values, browser string, from Client) (session IssuedSession, provider string, err error) {
	uuid, flow, err := s.consumeFlow(ctx, query, browser, from)
	if r := Repeated(err); r != nil {
		return session, r.Provider, recognize(err, from)
	}
	if err != nil {
		return session, "", err
	}
	session, provider, err = s.finishFlow(ctx, query, browser, flow, from)
	s.settle(ctx, uuid, err == nil || Pending(err) != nil)
	return session, provider, err
}

// finishFlow does what a flow was begun for.
func (s *Service) finishFlow(ctx context.Context, query url.Values, browser string, flow record.Token, from Client) (session IssuedSession, provider string, err error) {
	provider = flow.FlowProvider
	if from.Application, err = s.applicationOf(flow); err != nil {
		return session, provider, err
	}
	session.Application = from.Application
	p := s.providers[provider]
	if p == nil {
		return session, provider, errBadState() // it was configured when the flow began
	}
	found, err := p.Finish(record.AsService(ctx, ""), oauth.Callback{
		CallbackURL: s.base.At(CallbackPath), Query: query, Verifier: pkceVerifier(browser), Secret: flow.Secret,
	})
	if err != nil {
		return session, provider, err
	}
	if len(found.Changes) > 0 {
		s.log.WarnContext(ctx, "auth: a provider's profile could not be stored as it was sent", "provider", provider, "changes", fewChanges(found.Changes))
	}
	id := identity{Identity: record.Identity{ID: found.ID, Provider: provider, Profile: found.Profile, Once: found.Once, Validated: true}, must: found.Tokens != nil}
	id.keep = func(i *record.Ident) { s.setTokens(i, id.UUID(), found.Tokens) }
	if flow.User != "" {
		session, err = s.linkProvider(ctx, id, flow.User, from)
	} else {
		session, err = s.loginOrRegister(ctx, id, from)
	}
	if err == nil || Pending(err) != nil {
		s.guesses.Return(from.Address) // that BeginOAuth took
	}
	if err != nil {
		session = IssuedSession{Application: from.Application}
	}
	return session, provider, err
}

// fewChanges returns changes of a profile for the log, which has few of those that somebody may have thousands of.
func fewChanges(all []string) []string {
	const most = 20
	all = slices.Compact(all)
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most]), fmt.Sprintf("and %d more", len(all)-most))
}

// consumeFlow returns a flow and uses it up: a callback is valid once. Who has the callback without the secret of its browser learns
// from it alone whether it was finished.
func (s *Service) consumeFlow(ctx context.Context, query url.Values, browser string, from Client) (uuid string, flow record.Token, err error) {
	ctx = record.AsService(ctx, "")
	key := flowKey(query)
	if key == "" {
		return "", flow, errBadState()
	}
	uuid = flowUUID(key)
	if browser == "" {
		return uuid, flow, s.repeatedFlow(ctx, uuid, "")
	}
	repeated := false
	_, err = s.db.Tokens.Change(ctx, uuid, func(t *record.Token) error {
		if repeated = t.Use != nil; repeated {
			return record.ErrUnchanged
		}
		if !secret.Matches(browser, t.Browser) {
			return errBadState() // it stays: the browser that it belongs to may still finish it
		}
		flow = *t
		s.useUp(t, record.Use{Act: ActLoggedIn, Provider: t.FlowProvider, Browser: browserDigest(from), Secret: t.Browser})
		return nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return uuid, flow, errBadState()
	case err != nil:
		return uuid, flow, err
	case repeated:
		return uuid, flow, s.repeatedFlow(ctx, uuid, browser)
	case !s.now().Before(flow.Expires):
		s.settle(ctx, uuid, false)
		return uuid, flow, errBadState()
	}
	return uuid, flow, nil
}

// repeatedFlow returns the error of a callback whose flow was used before, or is none. The browser of the flow, which has its secret, waits
// for a callback in progress.
func (s *Service) repeatedFlow(ctx context.Context, uuid, browser string) error {
	t, err := s.db.Tokens.Read(ctx, uuid)
	if err != nil {
		return cmp.Or(record.IgnoreNotFound(err), errBadState())
	}
	u := t.Use
	own := u != nil && secret.Matches(browser, u.Secret)
	if own && !u.Done {
		if u, err = s.awaitUse(ctx, uuid, noneElse); err != nil {
			return err
		}
	}
	if u == nil || !u.Done {
		return errBadState()
	}
	repeated := usedBefore(*u, errs.Mismatch)
	Repeated(repeated).Known = own
	return repeated
}

// applicationOf returns the application that a token was made for; nil for none. Its redirect
// has to be configured still.
func (s *Service) applicationOf(t record.Token) (*Application, error) {
	if t.Application == nil || t.Application.Redirect == "" {
		return nil, nil
	}
	if _, ok := s.registered(t.Application.Redirect); !ok {
		return nil, errBadState()
	}
	return t.Application, nil
}

// linkProvider links an identity to the user who began the flow and must still be
// logged in.
func (s *Service) linkProvider(ctx context.Context, id identity, user string, from Client) (IssuedSession, error) {
	if from.Session == nil || from.Session.User.UUID != user {
		return IssuedSession{}, errBadState()
	}
	// The account may have got a second factor since BeginOAuth.
	if err := s.requireSecond(ctx, from.Session); err != nil {
		return IssuedSession{}, err
	}
	owner, _, err := s.db.FindOwner(record.AsService(ctx, ""), id.Identity)
	switch {
	case err != nil:
		return IssuedSession{}, err
	case owner.UUID == "":
		err = s.announce(record.AsService(ctx, user), from.Session.User, announcement{kind: NoticeLoginAdded, about: id.Provider})
	case owner.UUID != user:
		err = id.ErrTaken()
	}
	if err != nil {
		return IssuedSession{}, err
	}
	return IssuedSession{Session: *from.Session}, s.linkIdent(ctx, id, from.Session)
}

// loginOrRegister logs in the user of an identity, who is created if there is
// none.
func (s *Service) loginOrRegister(ctx context.Context, id identity, from Client) (IssuedSession, error) {
	for range record.Attempts {
		user, ident, err := s.db.FindOwner(record.AsService(ctx, ""), id.Identity)
		if err != nil {
			return IssuedSession{}, err
		}
		if user.UUID != "" {
			session, err := s.completeLogin(ctx, user, s.proofBy(id.Provider, id.Provider, 1), from)
			if err != nil && Pending(err) == nil {
				return IssuedSession{}, err
			}
			recordUse := func(ctx context.Context) error {
				_, err := s.recordProviderUse(ctx, ident.UUID, id)
				return record.IgnoreNotFound(err)
			}
			if id.must {
				// They are what was logged in for: a login whose tokens are lost has not succeeded.
				if err := recordUse(record.AsService(ctx, user.UUID)); err != nil {
					return IssuedSession{}, err
				}
				return session, err
			}
			s.runInBackground(record.AsService(ctx, user.UUID), "recording a login", recordUse)
			return session, err
		}
		reg := registration{identity: id, fields: object.Object{}, datas: id.Profile}
		if err := s.interceptRegistration(ctx, &reg); err != nil {
			return IssuedSession{}, err
		}
		user, err = s.createUser(ctx, reg)
		if errors.Is(err, errs.Exists) {
			continue // a concurrent flow has created the user
		}
		if err != nil {
			return IssuedSession{}, err
		}
		return s.completeLogin(ctx, user, s.proofBy(id.Provider, id.Provider, 1), from)
	}
	return IssuedSession{}, record.ErrContention()
}
