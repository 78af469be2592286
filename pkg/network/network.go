// Package network says which addresses are somebody's, for limits per client.
package network

import "net/netip"

// Of is what counts as one address: of IPv6, what one customer is given.
func Of(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	p, _ := ip.Prefix(64)
	return p.String()
}
