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

// Proxy is a Toxiproxy in front of a server: connections pass through it, and
// go wrong as a test wants it. At first all is well.
type Proxy struct {
	Address string // host and port that stand for the server's

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

// Heal lets everything pass from now on.
func (p *Proxy) Heal() { p.t.Helper(); p.must("/reset", map[string]any{}) }

// Cut breaks every connection and takes no new one, until Heal.
func (p *Proxy) Cut() { p.t.Helper(); p.must("/proxies/server", map[string]any{"enabled": false}) }

// Slow has every reply come later by about so many milliseconds.
func (p *Proxy) Slow(milliseconds int) {
	p.t.Helper()
	p.toxic("latency", map[string]int{"latency": milliseconds, "jitter": milliseconds / 2})
}

// Shorten ends each connection behind so many bytes of replies: within one,
// sooner or later.
func (p *Proxy) Shorten(size int) {
	p.t.Helper()
	p.toxic("limit_data", map[string]int{"bytes": size})
}

// Reset ends connections as a crash of the other side does, so many
// milliseconds after something of a reply came: the server has done what was
// asked of it, and nobody hears that.
func (p *Proxy) Reset(milliseconds int) {
	p.t.Helper()
	p.toxic("reset_peer", map[string]int{"timeout": milliseconds})
}

// Stall takes what is sent and passes on nothing.
func (p *Proxy) Stall() { p.t.Helper(); p.toxic("timeout", map[string]int{"timeout": 0}) }

// toxic lets something happen to replies.
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
