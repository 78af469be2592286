package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// oauth2Site is the part that is specific to one OAuth 2 provider.
type oauth2Site struct {
	authURL, tokenURL, profileURL string
	scope                         []string
	id                            string            // the profile's field with the user's id
	query                         map[string]string // of the profile's URL
	header                        map[string]string // of requests for profiles
	extra                         []extraDocument
	base                          string            // of the URLs, if it can be replaced
	offline                       map[string]string // parameters of the login page that a refresh token needs
	noPKCE                        bool              // the provider refuses a code_verifier

	// sign, if any, adds to the profile's query a proof that the request comes
	// from the application.
	sign func(query url.Values, clientSecret, accessToken string)
}

// extraDocument is a document below the profile's URL that becomes a field of the
// profile. It requires one of the scopes.
type extraDocument struct {
	path, field string
	scope       []string
}

var oauth2Sites = map[string]oauth2Site{
	"github": github, "google": google, "facebook": facebook, "amazon": amazon, "gitlab": gitlab, "discord": discord,
	"linkedin": linkedin,
}

// New makes the provider of a name: github, google, facebook, amazon, gitlab, discord or
// linkedin.
func New(name string, c config.OAuth2, by Requests) (Provider, error) {
	s, ok := oauth2Sites[name]
	if !ok {
		return nil, errs.New(errs.Invalid, "unknown OAuth 2 provider %q", name)
	}
	s = s.at(c.BaseURL)
	profileURL, err := url.Parse(cmp.Or(c.ProfileURL, s.profileURL))
	if err != nil {
		return nil, errs.New(errs.Invalid, "the profileURL of %s is malformed", name)
	}
	scope := c.Scope
	if scope == nil {
		scope = s.scope
	}
	return &oauth2Provider{
		oauth2Site: s,
		transport:  newTransport(name, by),
		config: oauth2.Config{
			ClientID:     c.ClientID,
			ClientSecret: string(c.ClientSecret),
			Scopes:       scope,
			Endpoint: oauth2.Endpoint{
				AuthURL:   cmp.Or(c.AuthURL, s.authURL),
				TokenURL:  cmp.Or(c.TokenURL, s.tokenURL),
				AuthStyle: oauth2.AuthStyleInParams,
			},
		},
		profileURL: profileURL,
		keeps:      c.KeepTokens,
	}, nil
}

// at returns the site at another base URL; "" is its own.
func (s oauth2Site) at(base string) oauth2Site {
	if base == "" {
		return s
	}
	for _, at := range []*string{&s.authURL, &s.tokenURL, &s.profileURL} {
		*at = strings.TrimSuffix(base, "/") + strings.TrimPrefix(*at, s.base)
	}
	return s
}

type oauth2Provider struct {
	oauth2Site
	transport  *transport
	config     oauth2.Config
	profileURL *url.URL
	keeps      bool
}

var (
	_ Provider = (*oauth2Provider)(nil)
	_ Keeper   = (*oauth2Provider)(nil)
)

func (p *oauth2Provider) Begin(_ context.Context, b AuthRequest) (Redirect, error) {
	var opts []oauth2.AuthCodeOption
	if p.keeps {
		opts = parameters(p.offline)
	}
	return redirect(p.config, b, !p.noPKCE, opts...)
}

// parameters are those of a login page's URL.
func parameters(values map[string]string) (opts []oauth2.AuthCodeOption) {
	for name, value := range values {
		opts = append(opts, oauth2.SetAuthURLParam(name, value))
	}
	return opts
}

func (p *oauth2Provider) Finish(ctx context.Context, f Callback) (Identity, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	isIssuer := func(iss string) bool { return sameOrigin(iss, p.config.Endpoint.AuthURL) }
	code, err := authorizationCode(p.transport.name, f.Query, isIssuer, false)
	if err != nil {
		return Identity{}, err
	}
	token, err := p.transport.exchange(ctx, p.config, f, code, !p.noPKCE)
	if err != nil {
		return Identity{}, err
	}
	profile, once, changes, err := p.profile(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	id, err := p.transport.identity(profile, p.id)
	if err != nil {
		return Identity{}, err
	}
	id.Once, id.Changes = once, append(changes, id.Changes...)
	if p.keeps {
		id.Tokens = tokensOf(p.config, token)
	}
	return id, nil
}

// profile fetches the profile. once are the fields that are absent because their documents were not returned.
func (p *oauth2Provider) profile(ctx context.Context,
	token *oauth2.Token) (profile object.Object, once, changes []string, err error) {
	header := http.Header{"Authorization": {"Bearer " + token.AccessToken}, "Accept": {"application/json"}}
	for name, value := range p.header {
		header.Set(name, value)
	}
	query := p.profileURL.Query()
	for name, value := range p.query {
		if !query.Has(name) {
			query.Set(name, value)
		}
	}
	if p.sign != nil {
		p.sign(query, p.config.ClientSecret, token.AccessToken)
	}
	at := *p.profileURL
	at.RawQuery = query.Encode()
	body, err := p.transport.get(ctx, p.transport.client(), at.String(), header)
	if err != nil {
		return nil, nil, nil, err
	}
	if profile, changes, err = p.transport.parse(body, p.id); err != nil {
		return nil, nil, nil, err
	}
	for _, m := range p.extra {
		if !granted(token, m.scope) {
			continue
		}
		value, changed, err := p.extraField(ctx, m, header)
		switch {
		case err == nil:
			profile[m.field] = value
			changes = append(changes, changed...)
		case isTransient(err):
			return nil, nil, nil, err
		default:
			once = append(once, m.field)
			changes = append(changes, m.field+": left out, "+err.Error())
		}
	}
	return profile, once, changes, nil
}

// extraField fetches a document that becomes a field of the profile.
func (p *oauth2Provider) extraField(ctx context.Context, m extraDocument,
	header http.Header) (value json.RawMessage, changes []string, err error) {
	body, err := p.transport.get(ctx, p.transport.client(), p.profileURL.JoinPath(m.path).String(), header)
	if err != nil {
		return nil, nil, err
	}
	wrapped, changes, err := p.transport.parse(slices.Concat([]byte(`{"`+m.field+`":`), object.WithoutMark(body),
		[]byte(`}`)))
	more := func(change string) bool { return !strings.HasPrefix(change, m.field+":") }
	if err == nil && (len(wrapped) != 1 || wrapped[m.field] == nil || slices.ContainsFunc(changes, more)) {
		err = errs.New(errs.Invalid, "the reply of %s can't be read", p.transport.name)
	}
	if err != nil {
		return nil, nil, err
	}
	return wrapped[m.field], changes, nil
}

// isTransient reports whether a request may succeed later. An optional document is omitted only if it would not be
// available later either.
func isTransient(err error) bool {
	kind := errs.KindOf(err)
	return kind == errs.Unavailable || kind == errs.Canceled
}

// granted reports whether a token has one of the scopes. GitHub separates them by
// commas, the others by spaces.
func granted(token *oauth2.Token, scope []string) bool {
	text, _ := token.Extra("scope").(string)
	has := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.ContainsFunc(scope, func(s string) bool { return slices.Contains(has, s) })
}

// redirect is Begin of all OAuth 2 providers.
func redirect(config oauth2.Config, b AuthRequest, pkce bool, opts ...oauth2.AuthCodeOption) (Redirect, error) {
	// A short verifier would not be noticed, and would not protect the flow.
	if len(b.Verifier) < 43 || len(b.Verifier) > 128 {
		return Redirect{}, errs.New(errs.Internal, "a PKCE verifier has 43 to 128 characters, not %d", len(b.Verifier))
	}
	config.RedirectURL = b.CallbackURL
	if pkce {
		opts = append(opts, oauth2.S256ChallengeOption(b.Verifier))
	}
	return Redirect{URL: config.AuthCodeURL(b.State, opts...)}, nil
}

// exchange exchanges a code for tokens.
func (t *transport) exchange(ctx context.Context, config oauth2.Config, f Callback, code string,
	pkce bool) (*oauth2.Token, error) {
	config.RedirectURL = f.CallbackURL
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.tokenClient())
	var opts []oauth2.AuthCodeOption
	if pkce {
		opts = append(opts, oauth2.VerifierOption(f.Verifier))
	}
	token, err := config.Exchange(ctx, code, opts...)
	if err != nil {
		return nil, t.tokenError(err,
			errs.New(errs.Invalid, "%s refused the login%s; start it again", t.name, codeOf(err)))
	}
	return token, nil
}

// tokenError translates an error of the token endpoint; otherwise is the error of a code, or a refresh token, that it
// does not accept.
func (t *transport) tokenError(err error, otherwise *errs.Error) error {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		// Only known codes are reported: a reply may quote anything.
		switch r.ErrorCode {
		case "invalid_client", "unauthorized_client", "incorrect_client_credentials", "redirect_uri_mismatch",
			"bad_client_secret", "bad_redirect_uri":
			otherwise = errs.New(errs.Internal, "%s refuses belfry (%s): check the client id, the secret and the "+
				"callback URL at the provider and in the configuration", t.name, r.ErrorCode)
		case "server_error", "temporarily_unavailable":
			otherwise = errs.New(errs.Unavailable, "%s reports an error%s; try again later", t.name,
				reported(r.ErrorCode))
		}
	}
	return knownError(err, otherwise)
}

// standardCodes are the codes of errors that RFC 6749, OpenID Connect and their extensions define. No others are
// reported: a reply may quote anything.
var standardCodes = map[string]bool{
	"invalid_request": true, "invalid_client": true, "invalid_grant": true, "unauthorized_client": true,
	"unsupported_grant_type": true,
	"invalid_scope":          true, "access_denied": true, "unsupported_response_type": true, "server_error": true,
	"temporarily_unavailable": true,
	"interaction_required":    true, "login_required": true, "account_selection_required": true,
	"consent_required":    true,
	"invalid_request_uri": true, "invalid_request_object": true, "request_not_supported": true,
	"request_uri_not_supported":  true,
	"registration_not_supported": true, "invalid_target": true, "invalid_token": true, "insufficient_scope": true,
	"invalid_dpop_proof": true, "use_dpop_nonce": true, "unmet_authentication_requirements": true, "slow_down": true,
	"unsupported_token_type": true, "insufficient_user_authentication": true,
	// GitHub's own.
	"bad_verification_code": true, "incorrect_client_credentials": true, "redirect_uri_mismatch": true,
	"application_suspended": true, "unverified_user_email": true,
}

// reported returns a code of an error in brackets, for messages.
func reported(code string) string {
	switch {
	case code == "":
		return ""
	case standardCodes[code]:
		return " (" + code + ")"
	default:
		return " (with a code of its own)"
	}
}

// codeOf is reported for the error code of a token endpoint.
func codeOf(err error) string {
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		return reported(r.ErrorCode)
	}
	return ""
}
