package httpkit

import (
	"iter"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// The headers in which a proxy can report the client. One of them is read; clients can send the other one themselves.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
)

// forwarding finds the address that a request comes from.
type forwarding struct {
	proxies []netip.Prefix
	header  string // that the proxies write
	log     *slog.Logger
	warned  atomic.Bool
}

func newForwarding(proxies []netip.Prefix, header string, log *slog.Logger) *forwarding {
	if header == "" {
		header = XForwardedFor
	}
	return &forwarding{proxies: slices.Clone(proxies), header: header, log: log}
}

// client returns the address that a request comes from: the peer of the connection or, if the peer is
// one of the proxies, the address that it reports in the header. The header is read from its end, where
// the nearest proxy appends: anything before the first address that is not a proxy can be forged. A
// malformed report ends the search with the address of the proxy that sent it.
func (f *forwarding) client(req *http.Request) string {
	address := peer(req.RemoteAddr)
	if len(f.proxies) == 0 {
		return address
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	client, reported := ip.Unmap().WithZone(""), false
	for hop := range hopsFromEnd(req.Header[f.header], f.header == Forwarded) {
		if !isProxy(client, f.proxies) {
			break
		}
		ip, ok := f.parse(hop)
		if !ok {
			f.warn(client, hop)
			break
		}
		client, reported = ip, true
	}
	if !reported {
		return address
	}
	return client.String()
}

// warn reports the headers of a proxy, once: it would otherwise be in the log for each request.
func (f *forwarding) warn(proxy netip.Addr, hop string) {
	if f.log == nil || f.warned.Swap(true) {
		return
	}
	f.log.Warn("a trusted proxy reports its clients in a way that belfry can't read, so they all count as one "+
		"address, that of the proxy, and share its limits; have the proxy write an IP address, or set proxyHeader to "+
		"the header that it writes",
		"proxy", proxy.String(), "header", f.header,
		"reported", Truncate(strings.ToValidUTF8(strings.TrimSpace(hop), "?"), 100))
}

// parse returns the address in an element of the header.
func (f *forwarding) parse(hop string) (netip.Addr, bool) {
	hop = strings.Trim(hop, " \t")
	if f.header == Forwarded {
		node, ok := forwardedFor(hop)
		if !ok {
			return netip.Addr{}, false
		}
		hop = node
	}
	return parseNode(hop)
}

// parseNode parses an address, which may have a port. Of IPv6 it is then in brackets, which it may also be without one.
func parseNode(text string) (netip.Addr, bool) {
	if inner, found := strings.CutPrefix(text, "["); found {
		address, port, closed := strings.Cut(inner, "]")
		if !closed || port != "" && !isPort(port) {
			return netip.Addr{}, false
		}
		text = address
	} else if at := strings.IndexByte(text, ':'); at >= 0 && strings.Contains(text[:at], ".") && isPort(text[at:]) {
		text = text[:at]
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, false
	}
	return ip.Unmap().WithZone(""), true
}

// isPort reports whether a text is a colon and a port: digits or, in RFC 7239, a name that hides it.
func isPort(text string) bool {
	port, found := strings.CutPrefix(text, ":")
	if name, hidden := strings.CutPrefix(port, "_"); hidden {
		return name != "" &&
			strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-") == ""
	}
	return found && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

// forwardedFor returns the node that an element of Forwarded names as the client. ok is false if the element is
// malformed, or names several or no nodes.
func forwardedFor(element string) (node string, ok bool) {
	for more := true; more; {
		var pair string
		pair, element, more = cutPair(element)
		if pair = strings.Trim(pair, " \t"); pair == "" {
			continue
		}
		name, value, found := strings.Cut(pair, "=")
		if !found {
			return "", false
		}
		if !strings.EqualFold(name, "for") {
			continue
		}
		if ok {
			return "", false
		}
		if node, ok = unquoteValue(value); !ok {
			return "", false
		}
	}
	return node, ok
}

// cutPair cuts an element of Forwarded at its first semicolon outside of quotes.
func cutPair(element string) (pair, rest string, more bool) {
	quoted := false
	for i := 0; i < len(element); i++ {
		switch c := element[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && c == ';':
			return element[:i], element[i+1:], true
		}
	}
	return element, "", false
}

// unquoteValue returns a token as it is, and the content of a quoted string.
func unquoteValue(value string) (string, bool) {
	inner, quoted := strings.CutPrefix(value, `"`)
	if !quoted {
		return value, !strings.Contains(value, `"`)
	}
	inner, closed := strings.CutSuffix(inner, `"`)
	if !closed || strings.Contains(inner, `"`) {
		return "", false
	}
	if strings.Contains(inner, `\`) {
		inner = strings.ReplaceAll(inner, `\`, "") // addresses have no backslashes: each escapes the next character
	}
	return inner, true
}

// hopsFromEnd returns the elements of the lines of a header that is a list, the last one first. A list of many takes no
// memory: it is read for every request. Commas in quotes do not count, if there can be quotes; those are paired from
// the end, too, so that a quote that a client sends is never paired with one that a proxy appends.
func hopsFromEnd(lines []string, quotes bool) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, line := range slices.Backward(lines) {
			for more := true; more; {
				last := line
				at := strings.LastIndexByte(line, ',')
				if quotes && strings.IndexByte(line[at+1:], '"') >= 0 {
					at = lastComma(line)
				}
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

// lastComma returns the index of the last comma of a line that is not in quotes, -1 without one.
func lastComma(line string) int {
	quoted := false
	for i := len(line) - 1; i >= 0; i-- {
		switch c := line[i]; {
		case c == '"' && (!quoted || !escaped(line, i)):
			quoted = !quoted
		case c == ',' && !quoted:
			return i
		}
	}
	return -1
}

// escaped reports whether the character at an index has an odd number of backslashes before it.
func escaped(line string, i int) bool {
	n := i
	for n > 0 && line[n-1] == '\\' {
		n--
	}
	return (i-n)%2 == 1
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
