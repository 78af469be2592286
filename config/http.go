package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// HTTP configures how Listen is served: with TLS by certificate files or by ACME, else without.
type HTTP struct {
	TLS      *CertificateFiles // nil: not by files
	ACME     *ACME             // nil: not by ACME
	Redirect string            // host:port that redirects to https; "" for none
	HSTS     time.Duration     // for how long browsers use https alone; 0: the header is not sent
}

// CertificateFiles are PEM files: a certificate with those that lead to its authority, and its key.
type CertificateFiles struct{ Cert, Key string }

// ACME says from where certificates come.
type ACME struct {
	Domains   []string // names that the certificate is for
	Email     string   // of the account; "" for none
	Directory string   // URL of the authority's directory
	CA        string   // path of a PEM file of authorities that Directory is trusted by; "": the system's
	ExtraCA   string   // as Config.CA, without CA
	Storage   string   // folder of certificates, keys and the account; processes may share it
}

// letsEncrypt is the directory of the authority that is used by default.
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

const defaultHSTS = 30 * day

// Secure reports whether Listen is served with TLS.
func (c *Config) Secure() bool { return c.HTTP.TLS != nil || c.HTTP.ACME != nil }

func (c *Config) readHTTP(s *section) {
	h := &c.HTTP
	s.doc.markSecret("http.tls.key")
	if files := s.section("tls"); s.has("tls") || s.doc.recorder != nil {
		h.TLS = &CertificateFiles{}
		files.require("cert", "the path of a PEM file with the certificate")
		files.require("key", "the path of a PEM file with the key of the certificate")
		readPath(files, "cert", &h.TLS.Cert, ReadFile)
		readPath(files, "key", &h.TLS.Key, ReadFile)
		files.rejectUnknown()
	}
	if acme := s.section("acme"); s.has("acme") || s.doc.recorder != nil {
		c.readACME(acme)
	}
	if c.Secure() {
		h.HSTS = defaultHSTS
	}
	decode(s, "redirect", &h.Redirect, parseOptionalAddress)
	decode(s, "hsts", &h.HSTS, durationIn(0, maxDays*day, "from 0s"))
	s.suggestions = map[string]string{"cert": "tls.cert", "key": "tls.key", "listen": "listen", "port": "listen"}
	s.rejectUnknown()
}

func (c *Config) readACME(s *section) {
	a := &ACME{Directory: letsEncrypt}
	c.HTTP.ACME = a
	for _, v := range s.list("domains") {
		if name, ok := convert(s.doc, v, parseDomain); ok {
			a.Domains = append(a.Domains, name)
		}
	}
	decode(s, "email", &a.Email, parseLine)
	decode(s, "directory", &a.Directory, urlWithScheme("https"))
	readPath(s, "ca", &a.CA, ReadFile)
	readPath(s, "storage", &a.Storage, WrittenFolder)
	if !s.has("storage") {
		c.derived = append(c.derived, func() { a.Storage = filepath.Join(c.Data, "acme") })
	}
	s.rejectUnknown()
}

// parseDomain accepts a name that an authority can issue a certificate for.
func parseDomain(text string) (string, error) {
	_, err := netip.ParseAddr(text)
	if err == nil || !hostSyntax.MatchString(text) || len(text) > maxHostName || !strings.Contains(text, ".") {
		return "", errors.New("expected a name such as app.example.com")
	}
	return strings.ToLower(text), nil
}

// scheme is that of the URLs at which Listen is served.
func (c *Config) scheme() string {
	if c.Secure() {
		return "https"
	}
	return "http"
}

// checkHTTP also completes the domains of ACME, which are that of baseURL by default.
func (c *Config) checkHTTP() {
	h := &c.HTTP
	switch {
	case h.TLS != nil && h.ACME != nil:
		c.doc.problem("http.acme", "certificates come from files or by ACME, not both; remove http.tls or http.acme")
	case !c.Secure():
		for _, key := range []string{"redirect", "hsts"} {
			if c.doc.isSet("http." + key) {
				c.doc.problem("http."+key, "has an effect with TLS alone; set http.tls or http.acme, or remove this key")
			}
		}
		return
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return // a problem of baseURL
	}
	if c.doc.isSet("baseURL") && base.Scheme != "https" {
		c.doc.problem("baseURL", "expected https://, since belfry serves TLS")
	}
	if h.ACME != nil && len(h.ACME.Domains) == 0 {
		name, err := parseDomain(base.Hostname())
		if err != nil {
			c.doc.problem("http.acme.domains", "is missing; name the domains of the certificate here, or one in baseURL")
		} else {
			h.ACME.Domains = []string{name}
		}
	}
	for key, other := range map[string]string{"listen": c.Listen, "bus.listen": c.Bus.Listen, "metrics.listen": c.Metrics.Listen} {
		if sameAddress(h.Redirect, other) {
			c.doc.problem("http.redirect", "is also the address of %s", key)
		}
	}
}

// RedirectTarget is where a request for a host, a name or address without a port, is redirected to: the same path by
// https.
func (c *Config) RedirectTarget(host, bound string) string {
	_, port, _ := net.SplitHostPort(bound)
	if base, err := url.Parse(c.BaseURLAt(bound)); err == nil && c.doc.isSet("baseURL") && strings.EqualFold(base.Hostname(), strings.TrimSuffix(host, ".")) {
		port = base.Port()
	}
	if port == "" || port == "443" {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		return "https://" + host
	}
	return "https://" + net.JoinHostPort(host, port)
}
