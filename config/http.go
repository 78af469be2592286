package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"belfry/config/decode"
	"belfry/config/value"
)

// HTTP configures how Listen is served: with TLS by certificate files or by ACME, else without.
type HTTP struct {
	// nil: not by files
	TLS *CertificateFiles `key:"tls"`
	// nil: not by ACME
	ACME *ACME `key:"acme"`
	// host:port that redirects to https; "" for none
	Redirect string `key:"redirect" is:"addressOrNone"`
	// for how long browsers use only https; 0: the header is not sent
	HSTS time.Duration `key:"hsts" is:"duration 0s"`

	_ struct{} `instead:"cert=tls.cert key=tls.key listen=listen port=listen"`
}

// CertificateFiles are PEM files: a certificate with those that lead to its authority, and its key.
type CertificateFiles struct {
	Cert string `key:"cert" is:"file" required:"the path of a PEM file with the certificate"`
	Key  string `key:"key" is:"file" secret:"true" required:"the path of a PEM file with the key of the certificate"`
}

// ACME says from where certificates come.
type ACME struct {
	// names that the certificate is for; that of BaseURL by default
	Domains []string `key:"domains" is:"domain"`
	// of the account; "" for none
	Email string `key:"email" is:"line"`
	// URL of the authority's directory
	Directory string `key:"directory" is:"url https" default:"https://acme-v02.api.letsencrypt.org/directory"`
	// path of a PEM file of authorities that Directory is trusted by; "": the system's
	CA      string `key:"ca" is:"file"`
	ExtraCA string // as Config.CA, without CA
	// folder of certificates, keys and the account; processes may share it
	Storage string `key:"storage" is:"folder" default:"{data}/acme"`
}

const defaultHSTS = 30 * day

// Secure reports whether Listen is served with TLS.
func (c *Config) Secure() bool { return c.HTTP.TLS != nil || c.HTTP.ACME != nil }

// Validate sets the default of HSTS, which is for TLS.
func (h *HTTP) Validate(s *decode.Section) {
	if (h.TLS != nil || h.ACME != nil) && !s.Has("hsts") {
		h.HSTS = defaultHSTS
	}
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
		c.doc.Problem("http.acme", "certificates come from files or by ACME, not both; remove http.tls or http.acme")
	case !c.Secure():
		for _, key := range []string{"redirect", "hsts"} {
			if c.doc.IsSet("http." + key) {
				c.doc.Problem("http."+key,
					"has an effect with TLS alone; set http.tls or http.acme, or remove this key")
			}
		}
		return
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return // a problem of baseURL
	}
	if c.doc.IsSet("baseURL") && base.Scheme != "https" {
		c.doc.Problem("baseURL", "expected https://, since belfry serves TLS")
	}
	if h.ACME != nil && len(h.ACME.Domains) == 0 {
		name, err := value.Domain(base.Hostname())
		if err != nil {
			c.doc.Problem("http.acme.domains",
				"is missing; name the domains of the certificate here, or one in baseURL")
		} else {
			h.ACME.Domains = []string{name}
		}
	}
	for key, other := range map[string]string{"listen": c.Listen, "bus.listen": c.Bus.Listen,
		"metrics.listen": c.Metrics.Listen} {
		if sameAddress(h.Redirect, other) {
			c.doc.Problem("http.redirect", "is also the address of %s", key)
		}
	}
}

// RedirectTarget is where a request for a host, a name or address without a port, is redirected to: the same path by
// https.
func (c *Config) RedirectTarget(host, bound string) string {
	_, port, _ := net.SplitHostPort(bound)
	if base, err := url.Parse(c.BaseURLAt(bound)); err == nil && c.doc.IsSet("baseURL") &&
		strings.EqualFold(base.Hostname(), strings.TrimSuffix(host, ".")) {
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

// RequestLimits bound what one client may ask for a second. 0 is no limit.
type RequestLimits struct {
	Address Rates    `key:"address"`
	User    Rates    `key:"user"`
	Bus     BusRates `key:"bus"`

	// bytes of replies to requests with a key that are kept for a user, or a network address
	Idempotency int64 `key:"idempotency" is:"sizeOrNone 1 1TiB" default:"16MiB"`

	Loopback bool `key:"loopback"` // clients at loopback addresses are limited as well
}

// Rates are the limits of a client over HTTP per second: requests, and bytes of lists and uploads. The largest request,
// a full page or a part of an upload, must not exceed them.
type Rates struct {
	Reads       int `key:"reads" is:"number 0 1000000"`
	Lists       int `key:"lists" is:"number 0 1000000"`
	Writes      int `key:"writes" is:"number 0 1000000"`
	ListBytes   int `key:"listBytes" is:"sizeOrNone 1MiB 1TiB"`
	UploadBytes int `key:"uploadBytes" is:"sizeOrNone 64KiB 1TiB"`
}

// BusRates are the limits of a client on the bus. The largest message must not exceed the bytes of a second.
type BusRates struct {
	Requests int `key:"requests" is:"number 0 1000000" default:"20000"`
	Bytes    int `key:"bytes" is:"sizeOrNone 1MiB 1TiB" default:"256MiB"`
}

// SetDefaults sets the limits of addresses and users.
func (l *RequestLimits) SetDefaults() {
	l.Address = Rates{Reads: 4000, Lists: 400, Writes: 2000, ListBytes: 128 << 20, UploadBytes: 256 << 20}
	l.User = Rates{Reads: 2000, Lists: 200, Writes: 1000, ListBytes: 64 << 20, UploadBytes: 128 << 20}
}

// overlap reports whether two paths are the same or one lies below the other.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// isLoopback reports whether only programs on this machine can connect to an address, host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// isLocal reports whether a URL is that of the machine itself.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	return err == nil && isLoopback(net.JoinHostPort(u.Hostname(), "80"))
}

// sameAddress reports whether two servers would listen on the same address. Port 0
// is a different port each time.
func sameAddress(a, b string) bool { return a == b && a != "" && !strings.HasSuffix(a, ":0") }
