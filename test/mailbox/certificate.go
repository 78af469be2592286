package mailbox

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"

	"belfry/test/kit/tlskit"
)

// certificate makes a certificate for Host, and the pool with its issuer.
func certificate(t testing.TB) (*tls.Config, *x509.CertPool) {
	t.Helper()
	folder := t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	tlskit.WriteValid(t, cert, key, Host)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}, tlskit.Pool(t, cert)
}
