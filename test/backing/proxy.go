package backing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"testing"

	"belfry/test/kit/programs"
)

// Proxy is a Toxiproxy in front of a server that injects faults into connections.
// It starts without faults.
type Proxy struct {
	Address string // host and port to use instead of the server's

	t   testing.TB
	api string
}

// StartProxy starts a proxy in front of an address.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	folder := must(t)(programs.Tools("toxiproxy"))
	host, port := splitAddress(t)
	p := &Proxy{Address: freeAddress(t), t: t, api: "http://" + net.JoinHostPort(host, port)}
	start(t, exec.Command(filepath.Join(folder, "server"), "-host", host, "-port", port), func(ctx context.Context) error {
		return p.call(ctx, http.MethodGet, "/version", nil)
	})
	p.must("/proxies", map[string]any{"name": "server", "listen": p.Address, "upstream": upstream, "enabled": true})
	return p
}

// Heal removes every fault.
func (p *Proxy) Heal() { p.t.Helper(); p.must("/reset", map[string]any{}) }

// Cut closes every connection and accepts no new one, until Heal.
func (p *Proxy) Cut() { p.t.Helper(); p.must("/proxies/server", map[string]any{"enabled": false}) }

// Slow delays every reply by about this many milliseconds.
func (p *Proxy) Slow(milliseconds int) {
	p.t.Helper()
	p.toxic("latency", map[string]int{"latency": milliseconds, "jitter": milliseconds / 2})
}

// Shorten closes each connection after this many bytes of replies, in the middle
// of a reply sooner or later.
func (p *Proxy) Shorten(size int) {
	p.t.Helper()
	p.toxic("limit_data", map[string]int{"bytes": size})
}

// Reset resets connections, as a crash of the peer does, this many milliseconds
// after a reply began: the server has executed the request, but the client
// receives no reply.
func (p *Proxy) Reset(milliseconds int) {
	p.t.Helper()
	p.toxic("reset_peer", map[string]int{"timeout": milliseconds})
}

// Stall accepts data and forwards no replies.
func (p *Proxy) Stall() { p.t.Helper(); p.toxic("timeout", map[string]int{"timeout": 0}) }

// toxic adds a toxic to the replies.
func (p *Proxy) toxic(kind string, attributes map[string]int) {
	p.t.Helper()
	p.must("/proxies/server/toxics", map[string]any{"type": kind, "stream": "downstream", "attributes": attributes})
}

func (p *Proxy) must(path string, body map[string]any) {
	p.t.Helper()
	if err := p.call(context.Background(), http.MethodPost, path, body); err != nil {
		p.t.Fatalf("the proxy: %v", err)
	}
}

func (p *Proxy) call(ctx context.Context, method, path string, body map[string]any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, p.api+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s: %s", method, path, res.Status, text)
	}
	return err
}
