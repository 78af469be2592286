package certificate

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"

	"belfry/internal/smallfile"
	"belfry/pkg/errs"
)

// Trusted returns the authorities of the system and those in a PEM file. Without a file it returns nil, which stands
// for those of the system. It reports errs.Invalid for a file without authorities, or with one that can't be parsed.
func Trusted(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	data, err := smallfile.Read(file, maxFile)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the authorities can't be read")
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // Go finds no authorities of this system
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	n := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, errs.New(errs.Invalid, "%s has a block %q: expected only certificates of authorities", file,
				block.Type)
		}
		n++
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "certificate %d of %s can't be used", n, file)
		}
		roots.AddCert(authority)
	}
	if begun := bytes.Count(data, []byte("-----BEGIN CERTIFICATE-----")); begun > n { // pem skips damaged ones
		return nil, errs.New(errs.Invalid,
			"of the %d certificates in %s, %d can't be decoded: they are truncated or damaged", begun, file, begun-n)
	}
	if n == 0 {
		return nil, errs.New(errs.Invalid,
			"%s has no certificate in the format PEM, which begins with -----BEGIN CERTIFICATE-----", file)
	}
	return roots, nil
}
