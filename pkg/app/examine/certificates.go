package examine

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/internal/smallfile"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/plan"
	"belfry/pkg/operations/doctor"
)

const (
	maxCertificates = 1 << 20
	expiresWarning  = 14 * 24 * time.Hour // automatic renewal has failed by then
)

// isAboutCertificate reports whether a warning of a configuration is about a certificate. askCertificates reports these
// as findings of their own.
func isAboutCertificate(warning string) bool { return strings.HasPrefix(warning, "the certificate ") }

// askCertificates checks the certificates of belfry, and the one that clients see at baseURL.
func (e *Examination) askCertificates(ctx context.Context) (all []doctor.Finding) {
	c := e.config
	if files := c.HTTP.TLS; files != nil {
		if pair, err := certificate.Load(files.Cert, files.Key); err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "certificate.unusable", Subject: "http.tls",
				Says: MessageOf(err), Do: "correct http.tls"})
		} else {
			all = append(all, e.judged("http.tls", pair.Leaf(), plan.PublicName(c),
				"renew "+files.Cert+"; belfry reads it again by itself")...)
		}
	}
	if acme := c.HTTP.ACME; acme != nil {
		all = append(all, e.askACME(acme.Storage, acme.Domains)...)
	}
	if file := c.Bus.TLS.Cert; file != "" {
		const key = "bus.tls.cert"
		if found, err := CertificatesIn(file); err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "certificate.unusable", Subject: key,
				Says: MessageOf(err), Do: "correct " + key})
		} else {
			all = append(all, e.judged(key, found[0], "", "replace "+file+", and restart belfry")...)
		}
	}
	return append(append(all, e.askAuthorities()...), e.askPublic(ctx)...)
}

// askAuthorities checks the files of trusted authorities. An expired certificate beside its successor is not a problem.
func (e *Examination) askAuthorities() (all []doctor.Finding) {
	c := e.config
	files := []struct{ key, path string }{{"ca", c.CA}, {"bus.tls.ca", c.Bus.TLS.CA}}
	if acme := c.HTTP.ACME; acme != nil {
		files = append(files, struct{ key, path string }{"http.acme.ca", acme.CA})
	}
	for _, file := range files {
		if file.path == "" {
			continue
		}
		authorities, err := CertificatesIn(file.path)
		if err != nil {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "certificate.unusable", Subject: file.key,
				Says: MessageOf(err), Do: "correct " + file.key})
			continue
		}
		last := slices.MaxFunc(authorities, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
		all = append(all,
			e.judged(file.key, last, "", "add the authority's new certificate to "+file.path+", and restart belfry")...)
	}
	return all
}

// askACME checks the obtained certificates in belfry's folder for them.
func (e *Examination) askACME(storage string, domains []string) (all []doctor.Finding) {
	for _, domain := range domains {
		found := AcmeFiles(storage, domain)
		if len(found) == 0 {
			all = append(all, doctor.Finding{Level: doctor.Warning, Name: "certificate.missing", Subject: domain,
				Says: "no certificate for it was obtained yet",
				Do: "start belfry at an address that the authority reaches as " + domain +
					", on port 80 or 443; the log has the reason of a refusal"})
		}
		for _, file := range found {
			found, err := CertificatesIn(file)
			if err != nil {
				all = append(all, doctor.Finding{Level: doctor.Problem, Name: "certificate.unusable", Subject: domain,
					Says: MessageOf(err), Do: "remove the file, and restart belfry: it obtains another one"})
				continue
			}
			all = append(all, e.judged(domain, found[0], "",
				"see belfry's log for why it is not renewed: the authority has to reach "+domain)...)
		}
	}
	return all
}

// judged reports whether a certificate is valid now, until when, and for a host, "" for any.
func (e *Examination) judged(subject string, leaf *x509.Certificate, host, do string) []doctor.Finding {
	f := doctor.Finding{Level: doctor.OK, Name: "certificate.ok", Subject: subject,
		Says: "it is valid until " + leaf.NotAfter.UTC().Format(time.RFC3339)}
	switch now := e.Now(); {
	case now.After(leaf.NotAfter):
		f.Level, f.Name, f.Says, f.Do = doctor.Problem, "certificate.expired",
			"it has expired at "+leaf.NotAfter.UTC().Format(time.RFC3339), do
	case now.Before(leaf.NotBefore):
		f.Level, f.Name, f.Says, f.Do = doctor.Problem, "certificate.early",
			"it is valid from "+leaf.NotBefore.UTC().Format(time.RFC3339)+" on",
			"set the clock of this machine, or wait"
	case host != "" && leaf.VerifyHostname(host) != nil:
		f.Level, f.Name, f.Says, f.Do = doctor.Problem, "certificate.otherName",
			"it is not for "+host+", the host of baseURL", "correct baseURL, or have a certificate made for "+host
	case leaf.NotAfter.Sub(now) < min(expiresWarning, leaf.NotAfter.Sub(leaf.NotBefore)/4):
		f.Level, f.Name, f.Says, f.Do = doctor.Warning, "certificate.expiring",
			"it expires at "+leaf.NotAfter.UTC().Format(time.RFC3339), do
	}
	return []doctor.Finding{f}
}

// CertificatesIn reads the certificates of a PEM file. It returns at least one, or an error.
func CertificatesIn(file string) (all []*x509.Certificate, err error) {
	data, err := smallfile.Read(file, maxCertificates)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in %s can't be read: %w", len(all)+1, file, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New(file + " has no certificate (PEM)")
	}
	return all, nil
}

// askPublic connects to baseURL as a client does: in front of belfry there may be a proxy with a certificate of its
// own.
func (e *Examination) askPublic(ctx context.Context) []doctor.Finding {
	u, err := url.Parse(e.config.BaseURLAt(""))
	if err != nil || u.Scheme != "https" {
		return nil
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	address := net.JoinHostPort(u.Hostname(), port)
	dialer := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: e.plan.Roots}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if bad := (*tls.CertificateVerificationError)(nil); errors.As(err, &bad) {
		return []doctor.Finding{{Level: doctor.Problem, Name: "certificate.untrusted", Subject: "baseURL",
			Says: fmt.Sprintf("the certificate at %s is not valid for this machine: %v", address, bad.Err),
			Do: "if clients trust its authority and only this machine does not, ignore this; else renew it where " +
				"TLS ends: in belfry, or in the proxy in front of it"}}
	}
	if err != nil {
		return []doctor.Finding{{Level: doctor.Unseen, Name: "certificate.unreachable", Subject: "baseURL",
			Says: fmt.Sprintf("%s can't be reached from this machine: %v", address, reasonOf(err)),
			Do:   "check from a client's network whether baseURL can be reached"}}
	}
	defer func() { _ = conn.Close() }()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	return e.judged("baseURL", leaf, "", "renew it where TLS ends: in belfry, or in the proxy in front of it")
}

// AcmeFiles returns the files of the certificates for a domain, one of each authority.
func AcmeFiles(storage, domain string) []string {
	found, _ := filepath.Glob(filepath.Join(storage, "certificates", "*", strings.ReplaceAll(domain, "*", "wildcard_"),
		"*.crt"))
	return found
}

// Latest returns the certificate with the latest end among those in files; nil for none.
func Latest(files []string) (last *x509.Certificate) {
	for _, file := range files {
		if all, err := CertificatesIn(file); err == nil && (last == nil || all[0].NotAfter.After(last.NotAfter)) {
			last = all[0]
		}
	}
	return last
}
