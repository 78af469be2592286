// Package certificate provides the certificates of a server that speaks TLS: from files, which may change while
// it runs, or from an authority by ACME, which are renewed.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"belfry/internal/smallfile"
	"belfry/pkg/errs"
)

// expiresSoon is how long before the end of a certificate belfry warns. Programs that renew files do so earlier.
const expiresSoon = 7 * 24 * time.Hour

// Limits of the files: a file of certificates has some KiB, and a chain some certificates.
const (
	maxFile  = 1 << 20
	maxChain = 20
)

// Pair is a certificate with its key, as read from files.
type Pair struct {
	cert, key         string // the files
	certData, keyData []byte
	certificate       tls.Certificate
}

// Load reads a certificate and its key. It reports errs.Invalid for files that can't be used.
func Load(cert, key string) (*Pair, error) {
	p := &Pair{cert: cert, key: key}
	var err error
	if p.certData, err = smallfile.Read(cert, maxFile); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the certificate can't be read")
	}
	if p.keyData, err = smallfile.Read(key, maxFile); err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the key can't be read")
	}
	if p.certificate, err = tls.X509KeyPair(p.certData, p.keyData); err != nil {
		if n := place(p.certData, p.keyData); n > 1 {
			return nil, errs.New(errs.Invalid, "%s has the certificate of the key %s in place %d: it must be the "+
				"first, before the intermediate certificates", cert, key, n)
		}
		return nil, errs.Wrap(err, errs.Invalid, "%s and %s can't be used", cert, key)
	}
	return p, nil
}

// place returns the position of a key's certificate among several, from 1; 0 for none.
func place(certs, key []byte) int {
	for n := 1; n <= maxChain; n++ {
		if _, err := tls.X509KeyPair(certs, key); err == nil {
			return n
		}
		_, certs = pem.Decode(certs)
	}
	return 0
}

// Leaf is the certificate itself, without the intermediate ones.
func (p *Pair) Leaf() *x509.Certificate { return p.certificate.Leaf }

// Same reports whether the files had the same content.
func (p *Pair) Same(other *Pair) bool {
	return other != nil && string(p.certData) == string(other.certData) && string(p.keyData) == string(other.keyData)
}

// Warnings returns the problems that keep clients from connecting, or soon will. host is a name that clients use; ""
// for any.
func (p *Pair) Warnings(host string, now time.Time) (all []string) {
	leaf := p.certificate.Leaf
	switch until := leaf.NotAfter.UTC().Format(time.RFC3339); {
	case now.After(leaf.NotAfter):
		all = append(all, fmt.Sprintf("the certificate %s has expired at %s: clients refuse it", p.cert, until))
	case now.Before(leaf.NotBefore):
		all = append(all, fmt.Sprintf("the certificate %s is valid from %s on: clients refuse it until then", p.cert,
			leaf.NotBefore.UTC().Format(time.RFC3339)))
	case leaf.NotAfter.Sub(now) < expiresSoon:
		all = append(all, fmt.Sprintf("the certificate %s expires at %s", p.cert, until))
	}
	if host != "" && leaf.VerifyHostname(host) != nil {
		all = append(all,
			fmt.Sprintf("the certificate %s is not for %s: clients that use this name refuse it", p.cert, host))
	}
	return all
}

// settings are the settings of TLS that do not depend on the certificate.
func settings(get func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: get}
}
