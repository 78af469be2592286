package deploy

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/test/backing"
	"belfry/test/process"
)

// behindReporting is served behind each proxy. Clients have addresses of loopback here.
const behindReporting = `
data: data
listen: 127.0.0.1:0
stores:
  Books: {expose: {}}
proxies: [127.0.0.1]
limits: {loopback: true, address: {reads: 1}}
bus: {listen: ""}
`

// from returns a client with an address of its own.
func from(t *testing.T, address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, to)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Behind proxies, each client has a limit of its own, whatever form the proxy reports its address in, and whatever the
// client sends.
func TestClientsBehindProxiesHaveLimitsOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		header string // of the configuration
		start  func(t testing.TB, upstream string) *backing.HTTPProxy
	}{
		"nginx":  {"", backing.StartNginx},
		"Apache": {"", backing.StartApache},
		"Caddy":  {"", backing.StartCaddy},
		"nginx, with ports": {"", func(t testing.TB, upstream string) *backing.HTTPProxy {
			return backing.StartNginxReporting(t, upstream, "X-Forwarded-For",
				"$proxy_add_x_forwarded_for:$remote_port")
		}},
		"nginx, with brackets": {"", func(t testing.TB, upstream string) *backing.HTTPProxy {
			return backing.StartNginxReporting(t, upstream, "X-Forwarded-For", "[::ffff:$remote_addr]:$remote_port")
		}},
		"nginx, RFC 7239": {"Forwarded", func(t testing.TB, upstream string) *backing.HTTPProxy {
			return backing.StartNginxReporting(t, upstream, "Forwarded",
				`$http_forwarded, for="$remote_addr:$remote_port";proto=$scheme;host="$http_host"`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text := behindReporting
			if c.header != "" {
				text += "proxyHeader: " + c.header + "\n"
			}
			file := filepath.Join(t.TempDir(), "belfry.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			belfry := process.ServePlain(t, file)
			proxy := c.start(t, strings.TrimPrefix(belfry.URL, "http://"))
			var forged atomic.Int64
			get := func(client *http.Client) int {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL+"/books/x", http.NoBody)
				if err != nil {
					t.Error(err)
					return 0
				}
				n := forged.Add(1)
				req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n%250))
				req.Header.Set("Forwarded", fmt.Sprintf(`for="198.51.100.%d`, n%250)) // its quote is not closed
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return 0
				}
				_ = res.Body.Close()
				return res.StatusCode
			}
			greedy, limited := from(t, "127.0.0.2"), atomic.Bool{}
			for round := 0; round < 100 && !limited.Load(); round++ {
				var all sync.WaitGroup
				for range 30 {
					all.Go(func() {
						if get(greedy) == http.StatusTooManyRequests {
							limited.Store(true)
						}
					})
				}
				all.Wait()
			}
			if !limited.Load() {
				t.Error("a client is not limited: what it sends is taken for its address")
			}
			if status := get(from(t, "127.0.0.3")); status != http.StatusNotFound {
				t.Errorf("another client gets %d: it shares the limit", status)
			}
		})
	}
}
