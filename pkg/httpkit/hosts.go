package httpkit

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// AnyHost among the names of NewHosts accepts every host.
const AnyHost = "*"

// Hosts are the hosts that requests may name. A page whose own host resolves to this
// server's address (DNS rebinding) has the rights of the server's origin in a browser,
// so a request for a host that nobody configured is refused.
type Hosts struct {
	names map[string]bool
	any   bool
}

// NewHosts returns Hosts that accept the host of a URL and the names, without ports,
// besides those that are always safe.
func NewHosts(base string, names ...string) *Hosts {
	h := &Hosts{names: map[string]bool{"localhost": true}}
	if u, err := url.Parse(base); err == nil && u.Hostname() != "" {
		names = append(names, u.Hostname())
	}
	for _, name := range names {
		h.any = h.any || name == AnyHost
		h.names[canonicalHost(name)] = true
	}
	return h
}

// Refuse returns the Filter against other hosts. The paths of probes are exempt: a load
// balancer sends any host, and probes reveal no secret. A nil Hosts refuses no host.
func (h *Hosts) Refuse(exempt ...string) Filter {
	return func(x *Exchange) error {
		if h.Accepts(x.Request.Context(), x.Request.Host) || slices.Contains(exempt, x.Request.URL.Path) {
			return nil
		}
		return misdirected{x.Request.Host}
	}
}

// Accepts reports whether requests may name a host.
func (h *Hosts) Accepts(ctx context.Context, host string) bool {
	return h == nil || h.any || h.accepts(ctx, host)
}

// accepts reports whether requests may name a host. Besides the configured ones these
// are the loopback addresses and the address that the client connected to: no page of
// another origin can have those as its host, since DNS is not asked for them.
func (h *Hosts) accepts(ctx context.Context, host string) bool {
	if h.names[host] {
		return true // without a port, and in the form that is compared: most requests that a proxy passes on
	}
	name := canonicalHost(WithoutPort(host))
	if h.names[name] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if ip.IsLoopback() {
		return true
	}
	local, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	return err == nil && own.Addr().Unmap().WithZone("") == ip
}

// WithoutPort returns the name or address in a Host header.
func WithoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if name, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(name, "]") {
		return name[:len(name)-1]
	}
	return host
}

// canonicalHost returns the one form of a name or address that is compared.
func canonicalHost(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().WithZone("").String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// misdirected is the error of a request for another host.
type misdirected struct{ host string }

func (m misdirected) Error() string {
	const most = 100
	if m.host == "" {
		return "the request names no host"
	}
	return "the configuration does not name the host " + Truncate(m.host, most)
}

// Problem is the problem document that the error is replied with.
func (m misdirected) Problem() Problem {
	return Problem{
		Type: "misdirected", Title: "This host is not served here", Status: http.StatusMisdirectedRequest,
		Detail: m.Error() +
			"; if clients are to reach belfry by it, set baseURL, or add it to hosts, in the configuration",
	}
}
