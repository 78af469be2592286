package app

import (
	"crypto/x509"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
)

var (
	buildDesc    = prometheus.NewDesc("belfry_build_info", "1, with the version of the process.", []string{"version"}, nil)
	diskFreeDesc = prometheus.NewDesc("belfry_disk_free_bytes", "Space that is free on the disk of a folder that belfry writes.", []string{"folder"}, nil)
	diskSizeDesc = prometheus.NewDesc("belfry_disk_size_bytes", "Size of the disk of a folder that belfry writes.", []string{"folder"}, nil)
	expiryDesc   = prometheus.NewDesc("belfry_certificate_expiry_timestamp_seconds", "Until when a certificate that the process serves is valid.", []string{"certificate"}, nil)
)

// collectMachine adds what only the machine of a process has: its version, its disks and its certificates.
func (a *App) collectMachine(gauge func(*prometheus.Desc, float64, ...string)) {
	gauge(buildDesc, 1, plan.Version())
	now := a.now()
	for _, at := range examine.WrittenFolders(now.config) {
		if free, size, known := examine.Space(examine.Existing(at.Folder)); known {
			gauge(diskFreeDesc, float64(free), at.Name)
			gauge(diskSizeDesc, float64(size), at.Name)
		}
	}
	if secured := a.secure.now.Load(); secured != nil && secured.files != nil {
		gauge(expiryDesc, float64(secured.files.Leaf().NotAfter.Unix()), "http.tls")
	}
	if acme := now.config.HTTP.ACME; acme != nil && a.secures() {
		for _, domain := range acme.Domains {
			if last := latest(examine.AcmeFiles(acme.Storage, domain)); last != nil {
				gauge(expiryDesc, float64(last.NotAfter.Unix()), domain)
			}
		}
	}
}

// latest returns the certificate of some files that is valid for the longest; nil for none.
func latest(files []string) (last *x509.Certificate) {
	for _, file := range files {
		if all, err := examine.CertificatesIn(file); err == nil && (last == nil || all[0].NotAfter.After(last.NotAfter)) {
			last = all[0]
		}
	}
	return last
}
