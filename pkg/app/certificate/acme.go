package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/mholt/acmez/v3"
	"go.uber.org/zap"

	"belfry/internal/smallfile"
	"belfry/pkg/errs"
)

// ACMEOptions configure NewACME. Domains, Directory and Storage are required.
type ACMEOptions struct {
	Domains   []string // of the certificates
	Email     string   // of the account; "" for none
	Directory string   // URL of the authority's
	CA        string   // path of a PEM file with the authorities for the connection to Directory; "": the system's
	ExtraCA   string   // path of a PEM file of authorities besides the system's, without CA; "" for none
	Storage   string   // folder of certificates, keys and the account; processes may share it

	Listen   string // host:port on which the server speaks TLS: for the challenge tls-alpn-01
	Redirect string // host:port on which Challenge is served, for http-01; "": it is not

	Log *slog.Logger

	renewal  time.Duration // between checks of whether to renew; 0: ten minutes
	onlyHTTP bool          // the challenge tls-alpn-01 is not used
}

// ACME has certificates that an authority issues, and renews them. Processes that share the folder share the
// certificates: one of them obtains each, and all of them answer challenges. It is safe for concurrent use.
type ACME struct {
	domains []string

	config *certmagic.Config
	issuer *certmagic.ACMEIssuer
	cache  *certmagic.Cache
	cancel context.CancelFunc
}

// NewACME begins to obtain certificates, which takes seconds. Until then connections fail. If the authority refuses or
// is unavailable, it logs this and retries with a growing backoff. It reports errs.Invalid for a file or folder that
// can't be used. Close ends it.
func NewACME(o ACMEOptions) (*ACME, error) {
	roots, err := rootsOf(o.CA)
	if err == nil && o.CA == "" {
		roots, err = Trusted(o.ExtraCA)
	}
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Storage, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the folder for certificates can't be created")
	}
	logger := zap.New(&logCore{handler: o.Log.Handler()})
	a := &ACME{domains: o.Domains}
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(certmagic.Certificate) (*certmagic.Config, error) { return a.config, nil },
		RenewCheckInterval: o.renewal, Logger: logger,
	})
	a.config = certmagic.New(a.cache, certmagic.Config{
		Storage: &certmagic.FileStorage{Path: o.Storage}, Logger: logger, DefaultServerName: o.Domains[0],
		FallbackServerName: o.Domains[0],
		OnEvent: func(_ context.Context, event string, data map[string]any) error {
			if event == "cert_obtained" {
				o.Log.Info("a certificate was obtained", "name", data["identifier"], "renewal", data["renewal"])
			}
			return nil
		},
	})
	template := certmagic.ACMEIssuer{
		CA: o.Directory, Email: o.Email, Agreed: true, TrustedRoots: roots, Logger: logger,
		DisableHTTPChallenge: o.Redirect == "", DisableTLSALPNChallenge: o.onlyHTTP,
	}
	template.ListenHost, template.AltTLSALPNPort = hostAndPort(o.Listen)
	if o.Redirect != "" {
		_, template.AltHTTPPort = hostAndPort(o.Redirect)
	}
	a.issuer = certmagic.NewACMEIssuer(a.config, template)
	a.config.Issuers = []certmagic.Issuer{a.issuer}
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	if err := a.config.ManageAsync(ctx, o.Domains); err != nil {
		a.Close()
		return nil, errs.Wrap(err, errs.Invalid, "certificates can't be obtained")
	}
	return a, nil
}

// CheckAuthorities reports errs.Invalid for a file without certificates. It accepts "", for no file.
func CheckAuthorities(file string) error {
	_, err := rootsOf(file)
	return err
}

// rootsOf reads certificates of authorities; nil are those of the system.
func rootsOf(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	data, err := smallfile.Read(file, maxFile)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the authorities can't be read")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return nil, errs.New(errs.Invalid, "%s has no certificate in the format PEM", file)
	}
	return roots, nil
}

func hostAndPort(address string) (host string, port int) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text)
	return host, port
}

// TLSConfig returns the settings of a server. Each connection uses the certificate at its time.
func (a *ACME) TLSConfig() *tls.Config {
	c := settings(func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if slices.Equal(hello.SupportedProtos, []string{acmez.ACMETLS1Protocol}) && !a.hasDomain(hello.ServerName) {
			return nil, errors.New("a challenge for a name without a configured certificate")
		}
		return a.config.GetCertificate(hello)
	})
	c.NextProtos = append(c.NextProtos, acmez.ACMETLS1Protocol)
	return c
}

// Challenge answers the challenge http-01, and passes other requests to the next handler.
func (a *ACME) Challenge(next http.Handler) http.Handler {
	challenge := a.issuer.HTTPChallengeHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if a.hasDomain(host) {
			challenge.ServeHTTP(w, r)
		} else {
			next.ServeHTTP(w, r)
		}
	})
}

// hasDomain reports whether there are challenges for a name. Requests of strangers for other names would be looked up
// in the storage, and logged as errors.
func (a *ACME) hasDomain(name string) bool {
	return slices.ContainsFunc(a.domains, func(domain string) bool { return strings.EqualFold(domain, name) })
}

// Close stops obtaining and renewing certificates.
func (a *ACME) Close() {
	a.cancel()
	a.cache.Stop()
}
