package process

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates creates an authority, and a certificate of this machine for both
// sides of a connection, as files.
func Certificates(t testing.TB) (certificate, key, authority string) {
	t.Helper()
	folder := t.TempDir()
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sign := func(c, parent *x509.Certificate, own, signs *ecdsa.PrivateKey) []byte {
		c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "belfry test"}
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, c, parent, own.Public(), signs)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	secret := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	root, leaf := secret(), secret()
	ca := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	authority = write("ca.pem", "CERTIFICATE", sign(ca, ca, root, root))
	certificate = write("cert.pem", "CERTIFICATE", sign(&x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, leaf, root))
	der, err := x509.MarshalECPrivateKey(leaf)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, write("key.pem", "EC PRIVATE KEY", der), authority
}
