package kit

import (
	"iter"
	"net/http"
	"net/netip"
	"slices"
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
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	client, reported := ip.Unmap().WithZone(""), false
	for hop := range hopsFromEnd(req.Header["X-Forwarded-For"]) {
		if !isProxy(client, proxies) {
			break
		}
		ip, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		client, reported = ip.Unmap().WithZone(""), true
	}
	if !reported {
		return address
	}
	return client.String()
}

// hopsFromEnd returns the elements of the lines of a header that is a list, the last one first. A list of many takes no memory: it
// is read for every request.
func hopsFromEnd(lines []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				last := line
				at := strings.LastIndexByte(line, ',')
				if more = at >= 0; more {
					line, last = line[:at], line[at+1:]
				}
				if !yield(last) {
					return
				}
			}
		}
	}
}

func isProxy(ip netip.Addr, proxies []netip.Prefix) bool {
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
