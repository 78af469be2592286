package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// NewOIDC makes a provider from its issuer. Discovery happens at the first login,
// so the provider may be unavailable while belfry starts.
func NewOIDC(c config.OIDC, by Requests) Provider {
	name := c.Issuer
	if u, err := url.Parse(c.Issuer); err == nil && u.Host != "" {
		name = u.Host
	}
	scope := c.Scope
	if scope == nil {
		scope = []string{oidc.ScopeOpenID, "email", "profile"}
	}
	// Without this scope the provider returns no ID token.
	if !slices.Contains(scope, oidc.ScopeOpenID) {
		scope = append([]string{oidc.ScopeOpenID}, scope...)
	}
	return &oidcProvider{
		transport:   newTransport(name, by),
		issuer:      c.Issuer,
		config:      oauth2.Config{ClientID: c.ClientID, ClientSecret: string(c.ClientSecret), Scopes: scope},
		keeps:       c.KeepTokens,
		discovering: make(chan struct{}, 1),
	}
}

type oidcProvider struct {
	oidcSite
	transport *transport
	issuer    string
	config    oauth2.Config // without its endpoint, which discovery returns
	keeps     bool

	discovering chan struct{} // held while discovering
	discovered  *discovery    // nil until a discovery succeeds
}

var (
	_ Provider = (*oidcProvider)(nil)
	_ Keeper   = (*oidcProvider)(nil)
)

func (p *oidcProvider) Begin(ctx context.Context, b AuthRequest) (Redirect, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	d, err := p.discover(ctx)
	if err != nil {
		return Redirect{}, err
	}
	config, err := p.configAt(d)
	if err != nil {
		return Redirect{}, err
	}
	return redirect(config, b, !p.noPKCE, append(parameters(p.query), oidc.Nonce(nonceOf(b.Verifier)))...)
}

func (p *oidcProvider) Finish(ctx context.Context, f Callback) (Identity, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	d, err := p.discover(ctx)
	if err != nil {
		return Identity{}, err
	}
	code, err := authorizationCode(p.transport.name, f.Query, p.isIssuer, d.NamesIssuer)
	if err != nil {
		return Identity{}, err
	}
	config, err := p.configAt(d)
	if err != nil {
		return Identity{}, err
	}
	token, err := p.transport.exchange(ctx, config, f, code, !p.noPKCE)
	if err != nil {
		return Identity{}, err
	}
	claims, changes, err := p.verify(ctx, d, token, nonceOf(f.Verifier))
	if err != nil {
		return Identity{}, err
	}
	profile, more, err := p.userInfo(ctx, d, token, claims)
	if err != nil {
		return Identity{}, err
	}
	id, err := p.identity(profile, f.Query)
	if err != nil {
		return Identity{}, err
	}
	id.Changes = slices.Concat(changes, more, id.Changes)
	if p.keeps {
		id.Tokens = tokensOf(config, token)
	}
	return id, nil
}

// isIssuer reports whether an issuer is the provider's.
func (p *oidcProvider) isIssuer(iss string) bool {
	if p.issuedBy != nil {
		return p.issuedBy(iss)
	}
	return iss == p.issuer
}

// identity makes an Identity of a profile and, if the provider sends a part of it there, of the callback.
func (p *oidcProvider) identity(profile object.Object, callback url.Values) (Identity, error) {
	if p.complete != nil {
		p.complete(profile, callback)
	}
	var id Identity
	var err error
	if p.id == nil {
		id, err = p.transport.identity(profile, "sub")
	} else {
		id, err = p.transport.identityOf(profile, p.id(profile), p.idFields, identifying...)
	}
	id.Once = p.once
	return id, err
}

func (p *oidcProvider) configAt(d *discovery) (oauth2.Config, error) {
	config := p.config
	config.Endpoint = d.endpoint
	if p.secret != nil {
		var err error
		if config.ClientSecret, err = p.secret(); err != nil {
			return config, err
		}
	}
	// A public client has no secret to put into a header.
	if config.ClientSecret == "" {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return config, nil
}

// nonceOf binds the ID token to the login: an ID token of another login has the
// nonce of another verifier.
func nonceOf(verifier string) string {
	sum := sha256.Sum256([]byte("nonce:" + verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// recordingKeySet records why keys could not be fetched, because the library only returns that as text. It also removes
// a byte order mark, which the library can't parse.
type recordingKeySet struct {
	oidc.KeySet
	err error
}

func (k *recordingKeySet) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	k.err = err
	return object.WithoutMark(payload), err
}

// perLoginClaims are claims about one login rather than about the user. With them
// each login would change the profile.
// the last three are Microsoft's
var perLoginClaims = []string{"exp", "iat", "nbf", "jti", "sid", "auth_time", "nonce", "at_hash", "c_hash", "s_hash",
	"aio", "rh", "uti"}

// userInfo returns the profile: the userinfo document, overridden by the signed
// claims, which identify the user without it.
func (p *oidcProvider) userInfo(ctx context.Context, d *discovery, token *oauth2.Token,
	claims object.Object) (profile object.Object, changes []string, err error) {
	forgetLogin(claims)
	if d.UserInfo == "" {
		return claims, nil, nil
	}
	header := http.Header{"Authorization": {"Bearer " + token.AccessToken}, "Accept": {"application/json"}}
	body, err := p.transport.get(ctx, p.transport.client(), d.UserInfo, header)
	if isTransient(err) {
		return nil, nil, err
	}
	var info object.Object
	if err == nil {
		info, changes, err = p.transport.parse(body, "sub")
	}
	if err != nil {
		return claims, []string{"the reply of the userinfo endpoint: left out, " + err.Error()}, nil //nolint:nilerr // the login does not need it
	}
	signed, _ := claims.Text("sub")
	if sub, ok := info.Text("sub"); !ok || sub != signed {
		return nil, nil, errs.New(errs.Invalid, "the profile of %s is another user's", p.transport.name)
	}
	forgetLogin(info) // dex sends the claims of the ID token
	return info.Merge(claims), changes, nil
}

func forgetLogin(claims object.Object) {
	for _, name := range perLoginClaims {
		delete(claims, name)
	}
}
