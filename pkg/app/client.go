package app

import (
	"crypto/x509"
	"path/filepath"

	"belfry/config"
	"belfry/pkg/app/certificate"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
)

// BusClient returns the options with which a command connects to the bus of a configuration: the external
// one, or the port of the embedded one in the process that serves.
func BusClient(c *config.Config) (bus.Options, error) {
	o, err := (&plan{config: c}).busOptions()
	if err != nil || o.URL != "" {
		return o, err
	}
	e := embeddedBus(c)
	o.URL, err = e.Address()
	switch {
	case err != nil:
		return o, errs.New(errs.Invalid, "%v; or give --url with the address that `belfry serve` prints", err)
	case o.URL == "":
		return o, errs.New(errs.Invalid, "the bus is inside the process that serves and has no port (bus.listen is empty): set bus.listen, to 127.0.0.1:4222 for instance, and restart belfry")
	}
	o.Syncer, err = embedded.OpenFiles(e)
	return o, err
}

// embeddedBus are the options of the embedded server of a configuration.
func embeddedBus(c *config.Config) embedded.Options {
	return embedded.Options{Folder: filepath.Join(c.Data, "bus"), Listen: c.Bus.Listen, Config: c.Bus.Config}
}

// BusTrust returns how a command that is given another address of the bus uses TLS: it trusts the authorities of bus.tls.ca, or those
// of ca besides the system's, as for the configured address.
func BusTrust(c *config.Config) (bus.TLS, error) {
	roots, err := WebTrust(c)
	return bus.TLS{CA: c.Bus.TLS.CA, RootCAs: roots, Cert: c.Bus.TLS.Cert, Key: c.Bus.TLS.Key}, err
}

// WebTrust returns the authorities that a command trusts for requests to a belfry by https: those of ca besides the system's; nil for
// the system's alone.
func WebTrust(c *config.Config) (*x509.CertPool, error) {
	roots, err := certificate.Trusted(c.CA)
	if err != nil {
		return nil, errs.New(errs.Invalid, "ca: %v", err)
	}
	return roots, nil
}
