package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// overlap reports whether two paths are the same or one lies below the other.
func overlap(a, b string) bool {
	return strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

// isLoopback reports whether only programs on this machine can connect to an address, host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// isLocal reports whether a URL is that of the machine itself.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	return err == nil && isLoopback(net.JoinHostPort(u.Hostname(), "80"))
}

// sameAddress reports whether two servers would listen on the same address. Port 0
// is a different port each time.
func sameAddress(a, b string) bool { return a == b && a != "" && !strings.HasSuffix(a, ":0") }
