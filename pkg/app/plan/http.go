package plan

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"

	"belfry/config"
	"belfry/pkg/api/pages"
	"belfry/pkg/app/certificate"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// BusTrust returns the settings of TLS for a command with another address of the bus. As for the configured address, it
// trusts the authorities of bus.tls.ca, or those of ca and of the system.
func BusTrust(c *config.Config) (bus.TLS, error) {
	roots, err := WebTrust(c)
	return bus.TLS{CA: c.Bus.TLS.CA, RootCAs: roots, Cert: c.Bus.TLS.Cert, Key: c.Bus.TLS.Key}, err
}

// WebTrust returns the authorities that a command trusts for requests to a belfry by https: those of ca and of the
// system; nil for only the system's.
func WebTrust(c *config.Config) (*x509.CertPool, error) {
	roots, err := certificate.Trusted(c.CA)
	if err != nil {
		return nil, errs.New(errs.Invalid, "ca: %v", err)
	}
	return roots, nil
}

// compileHTTP reads the certificate.
func (p *Plan) compileHTTP() (problems config.Problems) {
	h := &p.Config.HTTP
	var err error
	if h.TLS != nil {
		if p.Certificate, err = certificate.Load(h.TLS.Cert, h.TLS.Key); err != nil {
			problems = append(problems, p.Config.Problem("http.tls", "%v", err))
		}
	}
	if h.ACME != nil {
		if err := certificate.CheckAuthorities(h.ACME.CA); err != nil {
			problems = append(problems, p.Config.Problem("http.acme.ca", "%v", err))
		}
	}
	return problems
}

// PublicName is the name by which clients reach belfry; "" if none is configured.
func PublicName(c *config.Config) string {
	if u, err := url.Parse(c.BaseURLAt("")); err == nil {
		return u.Hostname()
	}
	return ""
}

// compilePages compiles the templates of the pages for people.
func (p *Plan) compilePages() config.Problems {
	var err error
	if p.Pages, err = pages.Load(p.Config.Pages.Folder); err != nil {
		return config.Problems{p.Config.Problem("pages.folder", "%v", err)}
	}
	return nil
}

// compileBranding reads the logo, and checks the color.
func (p *Plan) compileBranding() (problems config.Problems) {
	var err error
	b := p.Config.Branding
	if p.Logo, err = pages.LoadLogo(b.Logo); err != nil {
		problems = append(problems, p.Config.Problem("branding.logo", "%v", err))
	}
	if p.Accent, err = pages.Accent(b.Color); err != nil {
		problems = append(problems, p.Config.Problem("branding.color", "%v", err))
	}
	return problems
}

// compileTrust reads the authorities of the key ca.
func (p *Plan) compileTrust() config.Problems {
	roots, err := certificate.Trusted(p.Config.CA)
	if err != nil {
		return config.Problems{p.Config.Problem("ca", "%v", err)}
	}
	if roots != nil {
		web := http.DefaultTransport.(*http.Transport).Clone()
		web.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		p.Roots, p.web = roots, web
	}
	return nil
}
