package config

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Passkeys are logins by WebAuthn.
type Passkeys struct {
	RPID    string   // the domain that passkeys are bound to; "": the host of BaseURL
	RPName  string   // what authenticators show; "": the RP ID
	Origins []string // of the pages that may use them; nil: those of BaseURL and TrustedOrigins
}

// readPasskeys reads the section passkeys; nil when it is absent, or not enabled.
func readPasskeys(s *section, present bool) *Passkeys {
	p, enabled := &Passkeys{}, true
	decode(s, "enabled", &enabled, parseFlag)
	decode(s, "rpID", &p.RPID, parseRPID)
	decode(s, "rpName", &p.RPName, parseLine)
	for _, v := range s.list("origins") {
		if origin, ok := convert(s.doc, v, parsePasskeyOrigin); ok {
			p.Origins = append(p.Origins, origin)
		}
	}
	s.rejectUnknown()
	if !present || !enabled {
		return nil
	}
	return p
}

// parseRPID accepts a domain, which is no address.
func parseRPID(text string) (string, error) {
	if _, err := netip.ParseAddr(text); err == nil || !hostSyntax.MatchString(text) || len(text) > maxHostName {
		return "", errors.New("expected a domain such as example.com, without scheme and port: passkeys are not bound to addresses")
	}
	return strings.ToLower(text), nil
}

// PasskeysAt returns the relying party of passkeys where belfry is reached at a URL; nil without passkeys. The error says why
// browsers would refuse them there.
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
		if p.RPID, err = parseRPID(u.Hostname()); err != nil {
			return nil, errors.New("are bound to a domain, and the host of baseURL is an address: set baseURL to a URL with a name, such as https://app.example.com, or http://localhost:8080 for development")
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
	if androidOrigin.MatchString(origin) {
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
