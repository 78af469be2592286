package api

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress is where a request comes from: the other end of the connection
// or, when that is a proxy of the configuration, whom the proxy tells of. The
// header is read from its end, where the nearest proxy writes: what stands
// before the first address that is no proxy, anyone can have sent.
func (s *Server) clientAddress(req *http.Request) string {
	address := peer(req.RemoteAddr)
	if len(s.Proxies) == 0 {
		return address
	}
	hops := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isProxy(address); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap().WithZone("").String()
	}
	return address
}

func (s *Server) isProxy(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	for _, p := range s.Proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}
