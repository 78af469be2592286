package config

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"belfry/config/value"
)

// Passkeys are logins by WebAuthn.
type Passkeys struct {
	_ struct{} `key:"enabled" is:"flag" default:"true"`

	// the domain that passkeys are bound to; "": the host of BaseURL
	RPID   string `key:"rpID" is:"rpID"`
	RPName string `key:"rpName" is:"line"` // what authenticators show; "": the name of Branding, or the RP ID
	// of the pages that may use them; nil: those of BaseURL and TrustedOrigins
	Origins []string `key:"origins" is:"passkeyOrigin"`
}

// PasskeysAt returns the relying party of passkeys where belfry is reached at a URL; nil without passkeys. The error
// says why browsers would refuse them there.
func (a *Authentication) PasskeysAt(baseURL string) (*Passkeys, error) {
	if a.Passkeys == nil {
		return nil, nil
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Hostname() == "" {
		return nil, errors.New("need a baseURL")
	}
	p := *a.Passkeys
	if p.RPID == "" {
		if p.RPID, err = value.RPID(u.Hostname()); err != nil {
			return nil, errors.New("are bound to a domain, and the host of baseURL is an address: set baseURL to a " +
				"URL with a name, such as https://app.example.com, or http://localhost:8080 for development")
		}
	}
	own := strings.ToLower(u.Scheme + "://" + u.Host)
	if why := p.refuses(own); why != "" {
		return nil, errors.New("can't be used at baseURL: " + own + " " + why)
	}
	if p.Origins == nil {
		p.Origins = []string{own}
		for _, o := range a.TrustedOrigins {
			if p.refuses(o) == "" && !slices.Contains(p.Origins, o) {
				p.Origins = append(p.Origins, o)
			}
		}
	}
	for _, o := range p.Origins {
		if why := p.refuses(o); why != "" {
			return nil, errors.New("can't be used at all origins: " + o + " " + why)
		}
	}
	if p.RPName == "" {
		p.RPName = p.RPID
	}
	return &p, nil
}

// refuses says why browsers offer no passkeys of the RP ID to pages of an origin; "": they do.
func (p *Passkeys) refuses(origin string) string {
	if value.IsAndroidOrigin(origin) {
		return "" // the domain names the application in its assetlinks.json
	}
	u, err := url.Parse(origin)
	if err != nil {
		return "is no origin"
	}
	host := u.Hostname()
	switch {
	case host != p.RPID && !strings.HasSuffix(host, "."+p.RPID):
		return "is not " + p.RPID + " (rpID) or below it"
	case u.Scheme != "https" && host != "localhost" && !strings.HasSuffix(host, ".localhost"):
		return "is not https, which browsers demand everywhere but at localhost"
	}
	return ""
}
