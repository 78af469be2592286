package httpkit

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
)

// What is read of every request takes no memory for the number of its elements.
func TestListsInHeadersTakeNoMemoryForTheirElements(t *testing.T) {
	const bytes = 62 << 10
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"empty elements": {[]string{strings.Repeat(",", bytes)}, "127.0.0.1"},
		"proxies":        {[]string{"127.0.0.1" + strings.Repeat(",127.0.0.1", bytes/10)}, "127.0.0.1"},
		"behind one":     {[]string{strings.Repeat(",", bytes) + "10.1.2.3, 127.0.0.9"}, "10.1.2.3"},
		"lines":          {[]string{"192.0.2.1", strings.Repeat(",", bytes) + "10.1.2.3", "127.0.0.9"}, "10.1.2.3"},
	} {
		req := &http.Request{RemoteAddr: "127.0.0.1:9", Header: http.Header{"X-Forwarded-For": c.lines}}
		f := newForwarding(proxies, "", nil)
		if got := f.client(req); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if n := testing.AllocsPerRun(10, func() { f.client(req) }); n > 4 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}

	tags := []string{strings.Repeat(`"",`, bytes/3) + `""`}
	if n := testing.AllocsPerRun(10, func() { _, _ = parseTags("If-Match", tags) }); n > 20 {
		t.Errorf("entity tags: %v allocations", n)
	}
	long := JSON + strings.Repeat(`; a=""`, bytes/6)
	if n := testing.AllocsPerRun(10, func() { _, _, _ = ParseMediaType(long) }); n > 10 {
		t.Errorf("parameters of a media type: %v allocations", n)
	}
	if media, _, err := ParseMediaType(`attachment; filename="` + strings.Repeat("a", bytes) + `"`); err != nil ||
		media != "attachment" {
		t.Errorf("a long name: %s, %v", media, err)
	}
	query := strings.Repeat("a&", maxParameters) + "a"
	if _, err := ParseQuery(query); err == nil || !strings.Contains(err.Error(), "more than 1000 parameters") {
		t.Errorf("%d parameters: %v", maxParameters+1, err)
	}
	if got, err := ParseQuery(query[:2*maxParameters-1]); err != nil || len(got["a"]) != maxParameters {
		t.Errorf("%d parameters: %d, %v", maxParameters, len(got["a"]), err)
	}
}
