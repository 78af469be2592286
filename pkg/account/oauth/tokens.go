package oauth

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"belfry/pkg/errs"
)

// Tokens are issued by a provider for the data of a user. Formatting, logging and JSON show
// none of them.
type Tokens struct {
	Access  string
	Refresh string    // "" for none
	Expires time.Time // of Access; zero: never, or not known
	Scope   string    // of Access, separated by spaces
}

const redacted = "[tokens]"

// String redacts.
func (Tokens) String() string { return redacted }

// GoString redacts for %#v.
func (Tokens) GoString() string { return redacted }

// LogValue redacts for slog.
func (Tokens) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText redacts for encoders such as JSON.
func (Tokens) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Keeper is a provider whose tokens can be kept: all except those of OAuth 1.
type Keeper interface {
	Provider

	// KeepsTokens reports whether Finish returns tokens.
	KeepsTokens() bool

	// Refresh returns new tokens for a refresh token. A provider that rotates refresh tokens accepts each once, and may
	// end all of them when it receives one again. So two calls with one token must not overlap. Denied: the provider no
	// longer accepts the refresh token; see Finish for other errors.
	Refresh(ctx context.Context, refresh string) (Tokens, error)
}

// PostsCallback reports whether a provider sends the browser to the callback by POST.
func PostsCallback(p Provider) bool {
	o, ok := p.(*oidcProvider)
	return ok && o.query["response_mode"] == "form_post"
}

func (p *oauth2Provider) KeepsTokens() bool { return p.keeps }

func (p *oauth2Provider) Refresh(ctx context.Context, refresh string) (Tokens, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	return p.transport.refresh(ctx, p.config, refresh)
}

func (p *oidcProvider) KeepsTokens() bool { return p.keeps }

// Refresh ignores an ID token in the reply: it has no new information.
func (p *oidcProvider) Refresh(ctx context.Context, refresh string) (Tokens, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	d, err := p.discover(ctx)
	if err != nil {
		return Tokens{}, err
	}
	config, err := p.configAt(d)
	if err != nil {
		return Tokens{}, err
	}
	return p.transport.refresh(ctx, config, refresh)
}

// refresh returns new tokens for a refresh token, which is kept if the provider does not return another.
func (t *transport) refresh(ctx context.Context, config oauth2.Config, refresh string) (Tokens, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, t.tokenClient())
	token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return Tokens{}, t.tokenError(err,
			errs.New(errs.Denied, "%s no longer accepts the stored tokens%s", t.name, codeOf(err)))
	}
	if len(token.AccessToken)+len(token.RefreshToken) > maxRefreshed {
		return Tokens{}, errs.New(errs.Invalid, "a reply of %s has tokens of more than %d bytes", t.name, maxRefreshed)
	}
	return *tokensOf(config, token), nil
}

// maxRefreshed is the maximum size of tokens that replace others: larger tokens could not be stored, and the former
// ones would be lost. The reply may be larger, because it can have an ID token.
const maxRefreshed = 64 << 10

// tokensOf returns the tokens of a reply. A reply without a scope grants the requested one (RFC 6749,
// section 5.1). GitHub separates scopes by commas.
func tokensOf(config oauth2.Config, token *oauth2.Token) *Tokens {
	scope, ok := token.Extra("scope").(string)
	if !ok {
		scope = strings.Join(config.Scopes, " ")
	}
	return &Tokens{
		Access: token.AccessToken, Refresh: token.RefreshToken, Expires: token.Expiry,
		Scope: strings.Join(strings.FieldsFunc(scope, func(r rune) bool { return r == ' ' || r == ',' }), " "),
	}
}
