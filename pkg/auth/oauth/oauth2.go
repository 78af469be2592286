package oauth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// oauth2Site is what is specific to one OAuth 2 provider.
type oauth2Site struct {
	authURL, tokenURL, profileURL string
	scope                         []string
	id                            string            // the profile's field with the user's id
	query                         map[string]string // of the profile's URL
	header                        map[string]string // of requests for profiles
	extra                         []extraDocument

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

var oauth2Sites = map[string]oauth2Site{"github": github, "google": google, "facebook": facebook, "amazon": amazon}

// New makes the provider of a name: github, google, facebook or amazon.
func New(name string, c Config) (Provider, error) {
	s, ok := oauth2Sites[name]
	if !ok {
		return nil, errs.New(errs.Invalid, "unknown OAuth 2 provider %q", name)
	}
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
		transport:  newTransport(name, c.Timeout),
		config: oauth2.Config{
			ClientID:     c.ClientID,
			ClientSecret: c.ClientSecret,
			Scopes:       scope,
			Endpoint: oauth2.Endpoint{
				AuthURL:   cmp.Or(c.AuthURL, s.authURL),
				TokenURL:  cmp.Or(c.TokenURL, s.tokenURL),
				AuthStyle: oauth2.AuthStyleInParams,
			},
		},
		profileURL: profileURL,
	}, nil
}

type oauth2Provider struct {
	oauth2Site
	transport  *transport
	config     oauth2.Config
	profileURL *url.URL
}

var _ Provider = (*oauth2Provider)(nil)

func (p *oauth2Provider) Begin(_ context.Context, b AuthRequest) (Redirect, error) {
	return redirect(p.config, b)
}

func (p *oauth2Provider) Finish(ctx context.Context, f Callback) (Identity, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	isIssuer := func(iss string) bool { return sameOrigin(iss, p.config.Endpoint.AuthURL) }
	code, err := authorizationCode(p.transport.name, f.Query, isIssuer, false)
	if err != nil {
		return Identity{}, err
	}
	token, err := p.transport.exchange(ctx, p.config, f, code)
	if err != nil {
		return Identity{}, err
	}
	profile, err := p.profile(ctx, token)
	if err != nil {
		return Identity{}, err
	}
	return p.transport.identity(profile, p.id)
}

func (p *oauth2Provider) profile(ctx context.Context, token *oauth2.Token) (object.Object, error) {
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
		return nil, err
	}
	profile, err := p.transport.parse(body)
	if err != nil {
		return nil, err
	}
	for _, m := range p.extra {
		if !granted(token, m.scope) {
			continue
		}
		body, err := p.transport.get(ctx, p.transport.client(), p.profileURL.JoinPath(m.path).String(), header)
		if err != nil {
			return nil, err
		}
		wrapped, err := p.transport.parse(slices.Concat([]byte(`{"value":`), body, []byte(`}`)))
		if err != nil {
			return nil, err
		}
		profile[m.field] = wrapped["value"]
	}
	return profile, nil
}

// granted reports whether a token has one of the scopes. GitHub separates them by
// commas, the others by spaces.
func granted(token *oauth2.Token, scope []string) bool {
	text, _ := token.Extra("scope").(string)
	has := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
	return slices.ContainsFunc(scope, func(s string) bool { return slices.Contains(has, s) })
}

// redirect is Begin of all OAuth 2 providers.
func redirect(config oauth2.Config, b AuthRequest, opts ...oauth2.AuthCodeOption) (Redirect, error) {
	// A short verifier would not be noticed, and would not protect the flow.
	if len(b.Verifier) < 43 || len(b.Verifier) > 128 {
		return Redirect{}, errs.New(errs.Internal, "a PKCE verifier has 43 to 128 characters, not %d", len(b.Verifier))
	}
	config.RedirectURL = b.CallbackURL
	opts = append(opts, oauth2.S256ChallengeOption(b.Verifier))
	return Redirect{URL: config.AuthCodeURL(b.State, opts...)}, nil
}

// exchange exchanges a code for tokens.
func (t *transport) exchange(ctx context.Context, config oauth2.Config, f Callback, code string) (*oauth2.Token, error) {
	config.RedirectURL = f.CallbackURL
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.client())
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err == nil {
		return token, nil
	}
	otherwise := errs.New(errs.Invalid, "%s refused the login; start it again", t.name)
	var r *oauth2.RetrieveError
	if errors.As(err, &r) {
		// Only known codes are reported: a reply may quote anything.
		switch r.ErrorCode {
		case "invalid_client", "unauthorized_client", "incorrect_client_credentials", "redirect_uri_mismatch":
			otherwise = errs.New(errs.Internal, "%s refuses belfry (%s): check the client id, the secret and the callback URL there and in the configuration", t.name, r.ErrorCode)
		case "server_error", "temporarily_unavailable":
			otherwise = errs.New(errs.Unavailable, "%s reports an error; try again later", t.name)
		}
	}
	return nil, knownError(err, otherwise)
}
