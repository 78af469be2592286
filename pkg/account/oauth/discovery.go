package oauth

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"belfry/pkg/errs"
)

// metadataLimit is the size limit of discovery documents and key sets, which may
// contain certificates.
const metadataLimit = 1 << 20

// discovery is the discovery document of an issuer.
type discovery struct {
	endpoint oauth2.Endpoint
	keys     oidc.KeySet

	UserInfo    string   `json:"userinfo_endpoint"`
	Keys        string   `json:"jwks_uri"`
	Algorithms  []string `json:"id_token_signing_alg_values_supported"`
	Methods     []string `json:"token_endpoint_auth_methods_supported"`
	NamesIssuer bool     `json:"authorization_response_iss_parameter_supported"`
}

// discover returns the discovery document. It is fetched once; an error is not
// cached. A caller that waits for another's fetch waits no longer than for its
// own.
func (p *oidcProvider) discover(ctx context.Context) (*discovery, error) {
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return nil, p.transport.unavailable(ctx, ctx.Err())
	}
	if p.discovered != nil {
		return p.discovered, nil
	}
	found, err := p.fetchDiscovery(ctx)
	if err != nil {
		return nil, err
	}
	p.discovered = found
	return found, nil
}

func (p *oidcProvider) fetchDiscovery(ctx context.Context) (*discovery, error) {
	web := *p.transport
	web.limit = metadataLimit
	ctx = oidc.ClientContext(ctx, web.client())
	wrong := errs.New(errs.Internal, "%s has no usable discovery document: check the configured issuer",
		p.transport.name)
	provider, err := oidc.NewProvider(ctx, p.issuer)
	var mismatch *oidc.IssuerMismatchError
	if errors.As(err, &mismatch) {
		return nil, errs.New(errs.Internal, "the issuer of %s is %.200q: configure exactly this value", p.issuer,
			mismatch.Discovered)
	}
	if err != nil {
		return nil, knownError(err, wrong)
	}
	var d discovery
	if err := provider.Claims(&d); err != nil {
		return nil, wrong
	}
	d.endpoint = provider.Endpoint()
	d.endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if len(d.Methods) > 0 && !slices.Contains(d.Methods, "client_secret_basic") {
		d.endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	needed := p.safe(d.endpoint.AuthURL) && p.safe(d.endpoint.TokenURL) && p.safe(d.Keys)
	if !needed || d.UserInfo != "" && !p.safe(d.UserInfo) {
		return nil, wrong
	}
	// A signature by a shared secret is no proof, because the client has the secret too.
	d.Algorithms = slices.DeleteFunc(d.Algorithms,
		func(alg string) bool { return alg == "none" || strings.HasPrefix(alg, "HS") })
	d.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), web.client()), d.Keys)
	return &d, nil
}

// safe reports whether an endpoint uses https, or http like its issuer.
func (p *oidcProvider) safe(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && u.Host != "" &&
		(u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(p.issuer, "http:"))
}
