package app

import (
	"crypto/x509"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	buildDesc    = prometheus.NewDesc("belfry_build_info", "1, with the version of the process.", []string{"version"}, nil)
	diskFreeDesc = prometheus.NewDesc("belfry_disk_free_bytes", "Space that is free on the disk of a folder that belfry writes.", []string{"folder"}, nil)
	diskSizeDesc = prometheus.NewDesc("belfry_disk_size_bytes", "Size of the disk of a folder that belfry writes.", []string{"folder"}, nil)
	expiryDesc   = prometheus.NewDesc("belfry_certificate_expiry_timestamp_seconds", "Until when a certificate that the process serves is valid.", []string{"certificate"}, nil)
)

// collectMachine adds what only the machine of a process has: its version, its disks and its certificates.
func (a *App) collectMachine(gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(buildDesc, 1, Version())
	now := a.now()
	for _, at := range writtenFolders(now.config) {
		if free, size, known := space(existing(at.folder)); known {
			gauge(diskFreeDesc, float64(free), at.name)
			gauge(diskSizeDesc, float64(size), at.name)
		}
	}
	if files := a.secure.files; files != nil {
		gauge(expiryDesc, float64(files.Leaf().NotAfter.Unix()), "http.tls")
	}
	if acme := now.config.HTTP.ACME; acme != nil && a.secures() {
		for _, domain := range acme.Domains {
			if last := latest(acmeFiles(acme.Storage, domain)); last != nil {
				gauge(expiryDesc, float64(last.NotAfter.Unix()), domain)
			}
		}
	}
}

// acmeFiles are those of the certificates for a domain, one of each authority.
func acmeFiles(storage, domain string) []string {
	found, _ := filepath.Glob(filepath.Join(storage, "certificates", "*", strings.ReplaceAll(domain, "*", "wildcard_"), "*.crt"))
	return found
}

// latest returns the certificate of some files that is valid for the longest; nil for none.
func latest(files []string) (last *x509.Certificate) {
	for _, file := range files {
		if all, err := certificatesIn(file); err == nil && (last == nil || all[0].NotAfter.After(last.NotAfter)) {
			last = all[0]
		}
	}
	return last
}
