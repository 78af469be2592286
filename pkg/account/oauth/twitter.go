package oauth

import (
	"cmp"
	"context"
	"net/http"

	"github.com/dghubble/oauth1"

	"belfry/config"
	"belfry/pkg/errs"
)

// twitterProfile omits the user's last post and its entities. The id is read as text because the number is too large
// for most JSON parsers.
// https://developer.x.com/en/docs/twitter-api/v1/accounts-and-users/manage-account-settings/api-reference/get-account-verify_credentials.html
const (
	twitterProfile = "https://api.x.com/1.1/account/verify_credentials.json?include_email=true&include_entities=false&skip_status=true"
	twitterID      = "id_str"
)

// NewTwitter makes a provider that uses OAuth 1 as Twitter does.
func NewTwitter(c config.OAuth1, by Requests) Provider {
	return &oauth1Provider{
		transport: newTransport("twitter", by),
		config: oauth1.Config{
			ConsumerKey:    c.ConsumerKey,
			ConsumerSecret: string(c.ConsumerSecret),
			Endpoint: oauth1.Endpoint{
				RequestTokenURL: cmp.Or(c.RequestTokenURL, "https://api.x.com/oauth/request_token"),
				AuthorizeURL:    cmp.Or(c.AuthorizeURL, "https://api.x.com/oauth/authenticate"),
				AccessTokenURL:  cmp.Or(c.AccessTokenURL, "https://api.x.com/oauth/access_token"),
			},
		},
		profileURL: cmp.Or(c.ProfileURL, twitterProfile),
	}
}

type oauth1Provider struct {
	transport  *transport
	config     oauth1.Config
	profileURL string
}

var _ Provider = (*oauth1Provider)(nil)

func (p *oauth1Provider) Begin(ctx context.Context, b AuthRequest) (Redirect, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	config := p.configFor(ctx)
	config.CallbackURL = b.CallbackURL
	token, secret, err := config.RequestToken()
	if err != nil {
		return Redirect{}, knownError(err,
			errs.New(errs.Internal, "%s refuses belfry: check the consumer key, its secret and the callback URL at "+
				"the provider and in the configuration", p.transport.name))
	}
	at, err := config.AuthorizationURL(token)
	if err != nil {
		return Redirect{}, errs.New(errs.Internal, "the authorizeURL of %s is malformed", p.transport.name)
	}
	return Redirect{URL: at.String(), Token: token, Secret: secret}, nil
}

func (p *oauth1Provider) Finish(ctx context.Context, f Callback) (Identity, error) {
	ctx, cancel := p.transport.withTimeout(ctx)
	defer cancel()
	if f.Query.Has("denied") {
		return Identity{}, denied(p.transport.name)
	}
	request, verifier := f.Query.Get("oauth_token"), f.Query.Get("oauth_verifier")
	if request == "" || verifier == "" {
		return Identity{}, errs.New(errs.Invalid,
			"the callback of %s has no oauth_token or no oauth_verifier; start the login again", p.transport.name)
	}
	config := p.configFor(ctx)
	access, secret, err := config.AccessToken(request, f.Secret, verifier)
	if err != nil {
		return Identity{}, knownError(err,
			errs.New(errs.Invalid, "%s refused the login; start it again", p.transport.name))
	}
	signing := context.WithValue(ctx, oauth1.HTTPClient, config.HTTPClient)
	client := config.Client(signing, oauth1.NewToken(access, secret))
	body, err := p.transport.get(ctx, client, p.profileURL, http.Header{"Accept": {"application/json"}})
	if err != nil {
		return Identity{}, err
	}
	profile, changes, err := p.transport.parse(body, twitterID)
	if err != nil {
		return Identity{}, err
	}
	id, err := p.transport.identity(profile, twitterID)
	if err != nil {
		return Identity{}, err
	}
	id.Changes = append(changes, id.Changes...)
	return id, nil
}

// configFor is the configuration of one call: the library takes no context when it
// requests tokens.
func (p *oauth1Provider) configFor(ctx context.Context) *oauth1.Config {
	config := p.config
	config.HTTPClient = &http.Client{Transport: boundTransport{ctx, p.transport}}
	return &config
}

// boundTransport makes requests that end with a context.
type boundTransport struct {
	ctx       context.Context
	transport *transport
}

func (d boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return d.transport.RoundTrip(req.WithContext(d.ctx))
}
