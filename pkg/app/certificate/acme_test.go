package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/test/backing"
	"belfry/test/kit"
)

// connect returns the certificate that a server shows to clients of a name, who trust some authorities.
func connect(address, name string, roots *x509.CertPool) (*x509.Certificate, error) {
	dialer := &net.Dialer{Timeout: kit.Limit}
	conn, err := tls.DialWithDialer(dialer, "tcp", address,
		&tls.Config{ServerName: name, RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// connectAs connects with one protocol of ALPN, to whoever answers.
func connectAs(address, name, protocol string) (*x509.Certificate, error) {
	dialer := &net.Dialer{Timeout: kit.Limit}
	conn, err := tls.DialWithDialer(dialer, "tcp", address, &tls.Config{ServerName: name, NextProtos: []string{protocol}, InsecureSkipVerify: true}) //nolint:gosec // a stranger
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// serve serves TLS and the port that redirects.
func serve(t *testing.T, a *ACME, secure, plain net.Listener) {
	t.Helper()
	front := &http.Server{TLSConfig: a.TLSConfig(), Handler: http.NotFoundHandler(),
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	redirect := &http.Server{Handler: a.Challenge(http.NotFoundHandler())}
	go func() { _ = front.ServeTLS(secure, "", "") }()
	t.Cleanup(func() { _ = front.Close() })
	if plain != nil {
		go func() { _ = redirect.Serve(plain) }()
		t.Cleanup(func() { _ = redirect.Close() })
	}
}

func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	port := kit.FreePort(t)
	l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		t.Fatal(err)
	}
	return l, port
}

// Certificates are obtained by both challenges, and renewed before they end while the server serves.
func TestCertificatesAreObtainedAndRenewed(t *testing.T) {
	t.Parallel()
	for challenge, onlyHTTP := range map[string]bool{"tls-alpn-01": false, "http-01": true} {
		t.Run(challenge, func(t *testing.T) {
			t.Parallel()
			secure, tlsPort := listen(t)
			plain, httpPort := listen(t)
			const validity = 20 // seconds: two thirds of it pass before a renewal
			// certmagic keeps the challenges of a process by their names: parallel tests have different ones.
			name := challenge + ".example.com"
			authority := backing.ACME(t, validity, httpPort, tlsPort)
			logged := &kit.Tail{}
			o := ACMEOptions{
				Domains: []string{name}, Email: "admin@example.com", Directory: authority.Directory,
				CA:      authority.CAFile,
				Storage: filepath.Join(t.TempDir(), "acme"), Listen: secure.Addr().String(),
				Redirect: plain.Addr().String(),
				Log:      slog.New(slog.NewTextHandler(logged, nil)), renewal: 200 * time.Millisecond,
				onlyHTTP: onlyHTTP,
			}
			if !onlyHTTP {
				o.Redirect = ""
			}
			a, err := NewACME(o)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			serve(t, a, secure, plain)
			roots := authority.Roots(t)
			var first, second *x509.Certificate
			obtain := func(into **x509.Certificate) func() error {
				return func() (err error) {
					*into, err = connect(secure.Addr().String(), name, roots)
					if err != nil {
						err = fmt.Errorf("%w\n%s", err, logged)
					}
					return err
				}
			}
			kit.WaitUntil(t, obtain(&first))
			kit.WaitUntil(t, func() error {
				if err := obtain(&second)(); err != nil {
					return err
				}
				if first.SerialNumber.Cmp(second.SerialNumber) == 0 {
					return errors.New("it is not renewed: " + logged.String())
				}
				return nil
			})
			if !second.NotAfter.After(first.NotAfter) {
				t.Errorf("valid until %s, then until %s", first.NotAfter, second.NotAfter)
			}
			// Clients that name no server, or another one, get it as well, and decide for themselves.
			kit.WaitUntil(t, func() error { // on a slow machine it may have ended meanwhile, and is renewed then
				if _, err := connect(secure.Addr().String(), "other.example.com", roots); !errors.As(err,
					new(x509.HostnameError)) {
					return fmt.Errorf("another name: %w", err)
				}
				return nil
			})
			if challenge == "tls-alpn-01" {
				return
			}
			// A process that starts again, or another one that shares the folder, has the certificate at once.
			other, err := NewACME(o)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			shared, port := listen(t)
			serve(t, other, shared, nil)
			kit.WaitUntil(t, func() error {
				_, err := connect(fmt.Sprint("127.0.0.1:", port), name, roots)
				return err
			})
		})
	}
}

func TestAuthoritiesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	o := ACMEOptions{Domains: []string{"belfry.example.com"}, Directory: "https://127.0.0.1:1/dir",
		Storage: t.TempDir(), Listen: "127.0.0.1:1", Log: slog.New(slog.DiscardHandler)}
	for name, change := range map[string]func(*ACMEOptions){
		"no file":    func(o *ACMEOptions) { o.CA = filepath.Join(o.Storage, "none") },
		"no PEM":     func(o *ACMEOptions) { o.CA = "acme.go" },
		"no storage": func(o *ACMEOptions) { o.Storage = "acme.go" },
	} {
		bad := o
		change(&bad)
		if _, err := NewACME(bad); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
