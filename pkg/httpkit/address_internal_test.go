package httpkit

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// The peer is 10.0.0.1, and 10.0.0.0/8 and 2001:db8:1::/48 are proxies.
func TestTheAddressThatProxiesReport(t *testing.T) {
	const proxy = "10.0.0.1"
	for _, c := range []struct {
		header string // that is read
		lines  []string
		want   string
		warned bool
	}{
		{XForwardedFor, nil, proxy, false},
		{XForwardedFor, []string{"203.0.113.7"}, "203.0.113.7", false},
		{XForwardedFor, []string{"203.0.113.7:51234"}, "203.0.113.7", false},
		{XForwardedFor, []string{"2001:db8::1"}, "2001:db8::1", false},
		{XForwardedFor, []string{"[2001:db8::1]"}, "2001:db8::1", false},
		{XForwardedFor, []string{"[2001:db8::1]:443"}, "2001:db8::1", false},
		{XForwardedFor, []string{"[2001:DB8::1]:443 "}, "2001:db8::1", false},
		{XForwardedFor, []string{"[203.0.113.7]:1"}, "203.0.113.7", false},
		{XForwardedFor, []string{"::ffff:203.0.113.7"}, "203.0.113.7", false},
		{XForwardedFor, []string{"[::ffff:203.0.113.7]:80"}, "203.0.113.7", false},
		{XForwardedFor, []string{"fe80::1%eth0"}, "fe80::1", false},
		{XForwardedFor, []string{"198.51.100.1, 203.0.113.7:1, 10.2.3.4:5, [2001:db8:1::9]:80"}, "203.0.113.7", false},
		{XForwardedFor, []string{"198.51.100.1", "203.0.113.7:1", "10.2.3.4:5"}, "203.0.113.7", false},
		{XForwardedFor, []string{"no address, 203.0.113.7"}, "203.0.113.7", false}, // sent by the client
		{XForwardedFor, []string{"198.51.100.1, unknown"}, proxy, true},
		{XForwardedFor, []string{"198.51.100.1, "}, proxy, true},
		{XForwardedFor, []string{"198.51.100.1, unix:, 10.2.3.4"}, "10.2.3.4", true},
		{XForwardedFor, []string{"203.0.113.7:"}, proxy, true},
		{XForwardedFor, []string{"203.0.113.7:123456"}, proxy, true},
		{XForwardedFor, []string{"203.0.113.7:80:80"}, proxy, true},
		{XForwardedFor, []string{"[2001:db8::1"}, proxy, true},
		{XForwardedFor, []string{"[2001:db8::1]443"}, proxy, true},
		{XForwardedFor, []string{"[2001:db8::1]:x"}, proxy, true},
		{XForwardedFor, []string{"for=203.0.113.7"}, proxy, true},
		{XForwardedFor, []string{"client.example.com"}, proxy, true},

		{Forwarded, []string{"for=203.0.113.7"}, "203.0.113.7", false},
		{Forwarded, []string{"For=203.0.113.7;proto=https;by=10.0.0.1"}, "203.0.113.7", false},
		{Forwarded, []string{`proto=https; for="203.0.113.7:51234" ;host="a;b,c"`}, "203.0.113.7", false},
		{Forwarded, []string{`for="[2001:db8::1]"`}, "2001:db8::1", false},
		{Forwarded, []string{`for="[2001:db8::1]:443"`}, "2001:db8::1", false},
		{Forwarded, []string{`for="[2001:db8::1]:_hidden"`}, "2001:db8::1", false},
		{Forwarded, []string{`for=[2001:db8::1]:443`}, "2001:db8::1", false},
		{Forwarded, []string{`for="203.0.113.\7"`}, "203.0.113.7", false},
		{Forwarded, []string{`for=198.51.100.1, for=203.0.113.7;host="a, for=198.51.100.2", for="10.2.3.4:5"`},
			"203.0.113.7", false},
		{Forwarded, []string{`for=198.51.100.1`, `for=203.0.113.7`, `for=10.2.3.4`}, "203.0.113.7", false},
		// What a client sends can't swallow what the proxy appends, nor look like it.
		{Forwarded, []string{`for="198.51.100.1, for=203.0.113.7`}, "203.0.113.7", false},
		{Forwarded, []string{`for="198.51.100.1, for="203.0.113.7:1"`}, "203.0.113.7", false},
		{Forwarded, []string{`host="\", for="203.0.113.7:1";host="x\"y"`}, "203.0.113.7", false},
		{Forwarded, []string{`for=203.0.113.7;host="a\\"`}, "203.0.113.7", false},
		{Forwarded, []string{`for="`, `for=203.0.113.7`}, "203.0.113.7", false},
		{Forwarded, []string{"for=198.51.100.1, for=unknown"}, proxy, true},
		{Forwarded, []string{"for=198.51.100.1, for=_hidden"}, proxy, true},
		{Forwarded, []string{"for=198.51.100.1, proto=https"}, proxy, true},
		{Forwarded, []string{"for=198.51.100.1, "}, proxy, true},
		{Forwarded, []string{"for=203.0.113.7;for=203.0.113.7"}, proxy, true},
		{Forwarded, []string{"203.0.113.7"}, proxy, true},
		{Forwarded, []string{`for="203.0.113.7`}, proxy, true},
	} {
		other := map[string]string{XForwardedFor: Forwarded, Forwarded: XForwardedFor}[c.header]
		forged := map[string]string{XForwardedFor: "192.0.2.66", Forwarded: "for=192.0.2.66"}[other]
		var log bytes.Buffer
		f := newForwarding([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"),
			netip.MustParsePrefix("2001:db8:1::/48")}, c.header, slog.New(slog.NewTextHandler(&log, nil)))
		req := &http.Request{RemoteAddr: proxy + ":9", Header: http.Header{c.header: c.lines, other: {forged}}}
		for range 2 {
			if got := f.client(req); got != c.want {
				t.Errorf("%s: %q: %s, want %s", c.header, c.lines, got, c.want)
			}
		}
		if n := strings.Count(log.String(), "level=WARN"); (n == 1) != c.warned || n > 1 ||
			c.warned && !strings.Contains(log.String(), "header="+c.header) {
			t.Errorf("%s: %q: %d warnings: %s", c.header, c.lines, n, log.String())
		}
		// Nobody but a proxy is believed, nor warned of.
		log.Reset()
		req.RemoteAddr = "203.0.113.99:9"
		if got := f.client(req); got != "203.0.113.99" || log.Len() > 0 {
			t.Errorf("%q of a stranger: %s, %s", c.lines, got, log.String())
		}
	}
}

func TestForwardedTakesNoMemoryForItsElements(t *testing.T) {
	for _, line := range []string{
		strings.Repeat(`for="127.0.0.1:1",`, 3000) + `for="127.0.0.1"`, strings.Repeat(`"`, 62<<10),
		strings.Repeat(`;`, 62<<10), `host="` + strings.Repeat(`\"`, 31<<10) + `"`,
	} {
		f := newForwarding([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Forwarded, nil)
		req := &http.Request{RemoteAddr: "127.0.0.1:9", Header: http.Header{Forwarded: {line}}}
		if n := testing.AllocsPerRun(10, func() { f.client(req) }); n > 6 {
			t.Errorf("%.20s: %v allocations", line, n)
		}
	}
}
