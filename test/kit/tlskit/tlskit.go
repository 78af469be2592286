// Package tlskit makes certificates for tests.
package tlskit

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

// Write writes a certificate that signs itself, for names and addresses, and its key.
func Write(t testing.TB, cert, key string, from, until time.Time, names ...string) {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	private := newKey(t)
	writeCertificate(t, cert, template, template, private, private)
	writeKey(t, key, private)
}

// WriteValid is Write for a certificate that is valid for a year.
func WriteValid(t testing.TB, cert, key string, names ...string) {
	t.Helper()
	Write(t, cert, key, time.Now().Add(-time.Hour), time.Now().Add(365*24*time.Hour), names...)
}

// Authority creates an authority, and a certificate by it of this machine for both sides of a connection, as files.
func Authority(t testing.TB) (certificate, key, authority string) {
	t.Helper()
	folder, from, until := t.TempDir(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	certificate, key, authority = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"),
		filepath.Join(folder, "ca.pem")
	root, leaf, subject := newKey(t), newKey(t), pkix.Name{CommonName: "belfry test"}
	ca := &x509.Certificate{
		Subject: subject, NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	writeCertificate(t, authority, ca, ca, root, root)
	writeCertificate(t, certificate, &x509.Certificate{
		Subject: subject, NotBefore: from, NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca, leaf, root)
	writeKey(t, key, leaf)
	return certificate, key, authority
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// writeCertificate writes a certificate of a key that another certificate and its key sign.
func writeCertificate(t testing.TB, path string, c, parent *x509.Certificate, own, signs *ecdsa.PrivateKey) {
	t.Helper()
	var err error
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, own.Public(), signs)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "CERTIFICATE", der)
}

func writeKey(t testing.TB, path string, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "PRIVATE KEY", der)
}

// write replaces a file at once, as programs that renew certificates do.
func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Pool trusts the certificate in a file.
func Pool(t testing.TB, cert string) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	return PoolOf(t, data)
}

// PoolOf trusts the certificates in PEM.
func PoolOf(t testing.TB, data []byte) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatal("no certificate in PEM")
	}
	return pool
}

// WriteCertificates writes the certificates of a pair, as DER, into a file.
func WriteCertificates(t testing.TB, file string, certificates [][]byte) {
	t.Helper()
	var all []byte
	for _, der := range certificates {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
}
