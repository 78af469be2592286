package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"belfry/pkg/account/oauth"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
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

// Begin starts a flow. With linking, while a user is logged in, it links the identity to the user's account; otherwise
// it is a login.
func (s *Method) Begin(ctx context.Context, provider string, linking bool, from sessions.Client) (Flow, error) {
	p := s.Providers[provider]
	if p == nil {
		return Flow{}, errs.New(errs.NotFound, "no provider %q is configured", provider)
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return Flow{}, err
	}
	ctx = record.AsService(ctx, "")
	state, browser := secret.New(), secret.New()
	redirect, err := p.Begin(ctx,
		oauth.AuthRequest{CallbackURL: s.Base.At(CallbackPath), State: state, Verifier: pkceVerifier(browser)})
	if err != nil {
		return Flow{}, err
	}
	key := state
	if redirect.Token != "" {
		key = redirect.Token
	}
	flow := record.Token{
		FlowProvider: provider, Expires: s.DB.Now().Add(FlowTTL), Browser: secret.Digest(browser),
		Secret: redirect.Secret, Application: from.Application,
	}
	if linking && from.Session != nil && from.Application == nil {
		if err := s.Sessions.RequireFresh(ctx, from.Session); err != nil {
			return Flow{}, err
		}
		flow.User = from.Session.User.UUID
	}
	uuid := flowUUID(key)
	if _, err := s.DB.Tokens.Create(ctx, uuid, flow); err != nil {
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

// Identify returns the provider's identity of the user of a callback.
func (s *Method) Identify(ctx context.Context, query url.Values, browser string,
	flow record.Token) (id users.Identity, err error) {
	p := s.Providers[flow.FlowProvider]
	if p == nil {
		return id, sessions.StateError() // it was configured when the flow began
	}
	found, err := p.Finish(record.AsService(ctx, ""), oauth.Callback{
		CallbackURL: s.Base.At(CallbackPath), Query: query, Verifier: pkceVerifier(browser), Secret: flow.Secret,
	})
	if err != nil {
		return id, err
	}
	if len(found.Changes) > 0 {
		s.Log.WarnContext(ctx, "auth: a provider's profile could not be stored as it was sent",
			"provider", flow.FlowProvider, "changes", fewChanges(found.Changes))
	}
	id = users.Identity{Identity: record.Identity{ID: found.ID, Provider: flow.FlowProvider, Profile: found.Profile,
		Once: found.Once, Validated: true}, Must: found.Tokens != nil}
	id.Keep = func(i *record.Ident) { s.setTokens(i, id.UUID(), found.Tokens) }
	return id, nil
}

// fewChanges returns the changes of a profile for the log. Of thousands of changes it only returns a few.
func fewChanges(all []string) []string {
	const most = 20
	all = slices.Compact(all)
	if len(all) <= most {
		return all
	}
	return append(slices.Clone(all[:most]), fmt.Sprintf("and %d more", len(all)-most))
}

// ConsumeFlow returns a flow and uses it up: a callback is valid once. A client with the callback but without the
// secret of its browser learns only whether the flow was finished.
func (s *Method) ConsumeFlow(ctx context.Context, query url.Values, browser string,
	from sessions.Client) (uuid string, flow record.Token, err error) {
	ctx = record.AsService(ctx, "")
	key := flowKey(query)
	if key == "" {
		return "", flow, sessions.StateError()
	}
	uuid = flowUUID(key)
	if browser == "" {
		return uuid, flow, s.repeatedFlow(ctx, uuid, "")
	}
	repeated := false
	_, err = s.DB.Tokens.Change(ctx, uuid, func(t *record.Token) error {
		if repeated = t.Use != nil; repeated {
			return record.ErrUnchanged
		}
		if !secret.Matches(browser, t.Browser) {
			return sessions.StateError() // the flow is kept: its browser may still finish it
		}
		flow = *t
		s.Uses.UseUp(t, record.Use{Act: record.ActLoggedIn, Provider: t.FlowProvider, Browser: once.BrowserDigest(from),
			Secret: t.Browser})
		return nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return uuid, flow, sessions.StateError()
	case err != nil:
		return uuid, flow, err
	case repeated:
		return uuid, flow, s.repeatedFlow(ctx, uuid, browser)
	case !s.DB.Now().Before(flow.Expires):
		s.Uses.Settle(ctx, uuid, false)
		return uuid, flow, sessions.StateError()
	}
	return uuid, flow, nil
}

// repeatedFlow returns the error of a callback whose flow was used before, or does not exist. The browser of the flow,
// which has its secret, waits for a callback in progress.
func (s *Method) repeatedFlow(ctx context.Context, uuid, browser string) error {
	t, err := s.DB.Tokens.Read(ctx, uuid)
	if err != nil {
		return cmp.Or(record.IgnoreNotFound(err), sessions.StateError())
	}
	u := t.Use
	own := u != nil && secret.Matches(browser, u.Secret)
	if own && !u.Done {
		if u, err = s.Uses.AwaitUse(ctx, uuid, once.NoneElse); err != nil {
			return err
		}
	}
	if u == nil || !u.Done {
		return sessions.StateError()
	}
	repeated := once.UsedBefore(*u, errs.Mismatch)
	once.Repeated(repeated).Known = own
	return repeated
}

// Browsers send several cookies of one name, which were set for other paths or hosts: the first one that is valid
// counts. The functions here return the secret among several that belongs to the request. If none does, they return the
// first one, whose use fails as a single one would; "" without any.

// FlowSecret returns the secret of the flow of a callback.
func (s *Method) FlowSecret(ctx context.Context, query url.Values, secrets []string) string {
	return secret.FirstValid(secrets, func() func(string) bool {
		flow, err := s.DB.Tokens.Read(record.AsService(ctx, ""), flowUUID(flowKey(query)))
		if err != nil {
			return nil
		}
		browser := flow.Browser
		if flow.Use != nil {
			browser = flow.Use.Secret
		}
		return func(text string) bool { return secret.Matches(text, browser) }
	})
}

// ProviderNames returns the names of the configured OAuth providers, sorted.
func (s *Method) ProviderNames() []string { return slices.Sorted(maps.Keys(s.Providers)) }

// PostsCallback reports whether a provider sends browsers to the callback by POST.
func (s *Method) PostsCallback() bool {
	for _, p := range s.Providers {
		if oauth.PostsCallback(p) {
			return true
		}
	}
	return false
}

// KeepsTokens reports whether the tokens of a provider are kept.
func (s *Method) KeepsTokens() bool {
	for _, p := range s.Providers {
		if k, ok := p.(oauth.Keeper); ok && k.KeepsTokens() {
			return true
		}
	}
	return false
}
