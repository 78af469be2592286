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
	"belfry/pkg/errs"
	"belfry/pkg/store"
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

// Fields of a flow in the store of tokens.
const (
	fieldProvider = "provider"
	fieldBrowser  = "_browser"
	fieldSecret   = "_secret"
	fieldLinkUser = "_user" // the user to link the identity to; absent for a login
)

// flowUUID is the uuid of a flow by the parameter of the callback that identifies
// it: the state, or the request token of OAuth 1.
func flowUUID(key string) string { return "flow-" + hexDigest(key) }

// flowName is the part of a flow's uuid that is in the name of its cookie.
func flowName(uuid string) string { return uuid[len("flow-"):][:12] }

// pkceVerifier is the PKCE verifier of a flow. It is derived from the secret that
// only the browser has, so that the store of tokens holds none.
func pkceVerifier(secret string) string { return digest("verifier:" + secret) }

// BeginOAuth starts a flow. With linking, while somebody is logged in, it links
// the identity to their account; otherwise it is a login.
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
	redirect, err := p.Begin(ctx, oauth.AuthRequest{CallbackURL: s.base.At(CallbackPath), State: state, Verifier: pkceVerifier(secret)})
	if err != nil {
		return Flow{}, err
	}
	key := state
	if redirect.Token != "" {
		key = redirect.Token
	}
	flow := object.Object{}
	flow.Set(fieldProvider, provider)
	flow.Set(fieldExpires, timestamp(s.now().Add(FlowTTL)))
	flow.Set(fieldBrowser, digest(secret))
	if redirect.Secret != "" {
		flow.Set(fieldSecret, redirect.Secret)
	}
	if from.Application != nil {
		flow.Set(fieldApplication, from.Application)
	}
	if linking && from.Session != nil && from.Application == nil {
		if err := s.requireFresh(ctx, from.Session); err != nil {
			return Flow{}, err
		}
		flow.Set(fieldLinkUser, from.Session.User.UUID)
	}
	uuid := flowUUID(key)
	if _, err := s.tokens.Save(ctx, flow, uuid); err != nil {
		return Flow{}, err
	}
	return Flow{URL: redirect.URL, Name: flowName(uuid), Secret: secret}, nil
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
func (s *Service) FinishOAuth(ctx context.Context, query url.Values, secret string, from Client) (session IssuedSession, provider string, err error) {
	uuid, flow, err := s.consumeFlow(ctx, query, secret, from)
	if r := Repeated(err); r != nil {
		return session, r.Provider, recognize(err, from)
	}
	if err != nil {
		return session, "", err
	}
	session, provider, err = s.finishFlow(ctx, query, secret, flow, from)
	s.settle(ctx, uuid, err == nil || Pending(err) != nil)
	return session, provider, err
}

// finishFlow does what a flow was begun for.
func (s *Service) finishFlow(ctx context.Context, query url.Values, secret string, flow object.Object, from Client) (session IssuedSession, provider string, err error) {
	provider, _ = flow.Text(fieldProvider)
	if from.Application, err = s.flowApplication(flow); err != nil {
		return session, provider, err
	}
	session.Application = from.Application
	p := s.providers[provider]
	if p == nil {
		return session, provider, errBadState() // it was configured when the flow began
	}
	requestSecret, _ := flow.Text(fieldSecret)
	found, err := p.Finish(asService(ctx, ""), oauth.Callback{
		CallbackURL: s.base.At(CallbackPath), Query: query, Verifier: pkceVerifier(secret), Secret: requestSecret,
	})
	if err != nil {
		return session, provider, err
	}
	if len(found.Changes) > 0 {
		s.log.WarnContext(ctx, "auth: a provider's profile could not be stored as it was sent", "provider", provider, "changes", fewChanges(found.Changes))
	}
	id := identity{providerID: found.ID, provider: provider, profile: found.Profile, once: found.Once, tokens: found.Tokens, validated: true}
	if user, linking := flow.Text(fieldLinkUser); linking {
		session, err = s.linkProvider(ctx, id, user, from)
	} else {
		session, err = s.loginOrRegister(ctx, id, from)
	}
	if err == nil || Pending(err) != nil {
		s.returnAttempt(from) // that BeginOAuth took
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
func (s *Service) consumeFlow(ctx context.Context, query url.Values, secret string, from Client) (uuid string, flow object.Object, err error) {
	ctx = asService(ctx, "")
	key := flowKey(query)
	if key == "" {
		return "", nil, errBadState()
	}
	uuid = flowUUID(key)
	if secret == "" {
		return uuid, nil, s.repeatedFlow(ctx, uuid, "")
	}
	repeated := false
	_, err = s.tokens.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		if _, repeated = useOf(o); repeated {
			return store.Mutation{}, nil
		}
		browser, _ := o.Text(fieldBrowser)
		if !secretMatches(secret, browser) {
			return store.Mutation{}, errBadState() // it stays: the browser that it belongs to may still finish it
		}
		flow = o
		provider, _ := o.Text(fieldProvider)
		return store.Mutation{Fields: s.usedFields(o, use{Act: ActLoggedIn, Provider: provider, Browser: browserDigest(from), Secret: browser})}, nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return uuid, nil, errBadState()
	case err != nil:
		return uuid, nil, err
	case repeated:
		return uuid, nil, s.repeatedFlow(ctx, uuid, secret)
	case !s.now().Before(timeField(flow, fieldExpires)):
		s.settle(ctx, uuid, false)
		return uuid, nil, errBadState()
	}
	return uuid, flow, nil
}

// repeatedFlow returns the error of a callback whose flow was used before, or is none. The browser of the flow, which has its secret, waits
// for a callback in progress.
func (s *Service) repeatedFlow(ctx context.Context, uuid, secret string) error {
	stored, err := s.tokens.Get(ctx, uuid)
	if err != nil {
		return cmp.Or(ignoreNotFound(err), errBadState())
	}
	o, err := stored.Object()
	if err != nil {
		return err
	}
	u, used := useOf(o)
	own := used && secretMatches(secret, u.Secret)
	if own && !u.Done {
		if u, used, err = s.awaitUse(ctx, uuid, noneElse); err != nil {
			return err
		}
	}
	if !used || !u.Done {
		return errBadState()
	}
	repeated := u.repeated(errs.Mismatch)
	Repeated(repeated).Known = own
	return repeated
}

// flowApplication returns the application that a flow was begun for; nil for none. Its redirect
// has to be configured still.
func (s *Service) flowApplication(flow object.Object) (*Application, error) {
	a := applicationOf(flow[fieldApplication])
	if a == nil {
		return nil, nil
	}
	if _, ok := s.registered(a.Redirect); !ok {
		return nil, errBadState()
	}
	return a, nil
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
	owner, _, err := s.findOwner(asService(ctx, ""), id)
	switch {
	case err != nil:
		return IssuedSession{}, err
	case owner.UUID == "":
		err = s.announce(asService(ctx, user), from.Session.User, announcement{kind: NoticeLoginAdded, about: id.provider})
	case owner.UUID != user:
		err = id.errTaken()
	}
	if err != nil {
		return IssuedSession{}, err
	}
	return IssuedSession{Session: *from.Session}, s.linkIdent(ctx, id, from.Session)
}

// loginOrRegister logs in the user of an identity, who is created if there is
// none.
func (s *Service) loginOrRegister(ctx context.Context, id identity, from Client) (IssuedSession, error) {
	for range maxAttempts {
		user, ident, err := s.findOwner(asService(ctx, ""), id)
		if err != nil {
			return IssuedSession{}, err
		}
		if user.UUID != "" {
			session, err := s.completeLogin(ctx, user, s.proofBy(id.provider, id.provider, 1), from)
			if err != nil && Pending(err) == nil {
				return IssuedSession{}, err
			}
			record := func(ctx context.Context) error {
				_, err := s.recordProviderUse(ctx, ident.UUID, id)
				return ignoreNotFound(err)
			}
			if id.tokens != nil {
				// They are what was logged in for: a login whose tokens are lost has not succeeded.
				if err := record(asService(ctx, user.UUID)); err != nil {
					return IssuedSession{}, err
				}
				return session, err
			}
			s.runInBackground(asService(ctx, user.UUID), "recording a login", record)
			return session, err
		}
		reg := registration{identity: id, fields: object.Object{}, datas: id.profile}
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
		return s.completeLogin(ctx, user, s.proofBy(id.provider, id.provider, 1), from)
	}
	return IssuedSession{}, errContention()
}
