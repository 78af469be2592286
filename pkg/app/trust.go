package app

import (
	"crypto/tls"
	"net/http"
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/app/certificate"
)

// compileTrust reads the authorities of the key ca.
func (p *plan) compileTrust() config.Problems {
	roots, err := certificate.Trusted(p.config.CA)
	if err != nil {
		return config.Problems{p.config.Problem("ca", "%v", err)}
	}
	if roots != nil {
		web := http.DefaultTransport.(*http.Transport).Clone()
		web.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		p.roots, p.web = roots, web
	}
	return nil
}

// warnOfTrust says what a changed file of authorities is not used for before the next start.
func (g *serving) warnOfTrust(changed []string) {
	if slices.ContainsFunc(changed, func(key string) bool { return key == "ca" || strings.HasPrefix(key, "ca (") }) {
		g.log.Info("mailers and providers of logins trust the authorities of ca as they are now; backends, storages, the bus and traces do so from their next start on", "file", g.config.CA)
	}
}
