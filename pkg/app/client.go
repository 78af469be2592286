package app

import (
	"path/filepath"

	"belfry/config"
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
