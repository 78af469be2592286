package app

import (
	"net"
	"path/filepath"

	"belfry/config"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// BusClient is how a command reaches the bus of a configuration: the external
// one, or the embedded one of the process that serves, through its port.
func BusClient(c *config.Config) (bus.Options, error) {
	o, err := (&plan{config: c}).busOptions()
	if err != nil || o.URL != "" {
		return o, err
	}
	const instead = "; or give --url with an address where it can be reached"
	if c.Bus.Listen == "" {
		return o, errs.New(errs.Invalid, "the bus is inside the process that serves and has no port (bus.listen is empty): set bus.listen, to 127.0.0.1:4222 for instance, and serve anew%s", instead)
	}
	host, port, err := net.SplitHostPort(c.Bus.Listen)
	switch {
	case err != nil:
		return o, errs.Wrap(err, errs.Invalid, "bus.listen: %q is not host:port", c.Bus.Listen)
	case port == "0":
		return o, errs.New(errs.Invalid, "bus.listen has port 0, another one after each start: give --url with the address that `belfry serve` says, or set bus.listen to a port")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	o.URL = "nats://" + net.JoinHostPort(host, port)
	o.Embedded = &bus.Embedded{Folder: filepath.Join(c.Data, "bus")}
	return o, nil
}
