package kit

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress returns the address that a request comes from: the peer of the
// connection or, if the peer is one of the proxies, the address that it reports in
// X-Forwarded-For. That header is read from its end, where the nearest proxy
// appends: whatever precedes the first address that is not a proxy can be
// forged.
func clientAddress(req *http.Request, proxies []netip.Prefix) string {
	address := peer(req.RemoteAddr)
	if len(proxies) == 0 {
		return address
	}
	hops := strings.Split(strings.Join(req.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isProxy(address, proxies); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop.Unmap().WithZone("").String()
	}
	return address
}

func isProxy(address string, proxies []netip.Prefix) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	for _, p := range proxies {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// peer returns the address of the other end of the connection.
func peer(remoteAddr string) string {
	if i := strings.LastIndexByte(remoteAddr, ':'); i > 0 {
		return strings.Trim(remoteAddr[:i], "[]")
	}
	return remoteAddr
}
