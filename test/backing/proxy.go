package backing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"belfry/test/kit/programs"
)

// Proxies is a Toxiproxy: any number of proxies in one process.
type Proxies struct {
	t   testing.TB
	api string

	mu    sync.Mutex
	count int
}

// StartProxies starts a Toxiproxy without proxies.
func StartProxies(t testing.TB) *Proxies {
	t.Helper()
	folder := must(t)(programs.Tools("toxiproxy"))
	host, port := splitAddress(t)
	s := &Proxies{t: t, api: "http://" + net.JoinHostPort(host, port)}
	start(t, exec.Command(filepath.Join(folder, "server"), "-host", host, "-port", port),
		func(ctx context.Context) error {
			return s.call(ctx, http.MethodGet, "/version", nil)
		})
	return s
}

// To adds a proxy in front of an address.
func (s *Proxies) To(upstream string) *Proxy {
	s.t.Helper()
	s.mu.Lock()
	s.count++
	p := &Proxy{Address: freeAddress(s.t), server: s, path: fmt.Sprintf("/proxies/%d", s.count)}
	s.mu.Unlock()
	err := s.call(s.t.Context(), http.MethodPost, "/proxies",
		map[string]any{"name": p.path[len("/proxies/"):], "listen": p.Address, "upstream": upstream, "enabled": true})
	if err != nil {
		s.t.Fatalf("the proxy: %v", err)
	}
	return p
}

// Proxy is a proxy in front of a server that injects faults into connections.
// It starts without faults.
type Proxy struct {
	Address string // host and port to use instead of the server's

	server *Proxies
	path   string

	mu     sync.Mutex
	count  int      // of toxics, ever
	toxics []string // paths
}

// StartProxy starts a proxy in front of an address.
func StartProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	return StartProxies(t).To(upstream)
}

// Heal removes every fault.
func (p *Proxy) Heal() { p.server.t.Helper(); p.must(p.Clear(context.Background())) }

// Cut closes every connection and accepts no new one, until Heal.
func (p *Proxy) Cut() { p.server.t.Helper(); p.must(p.Disable(context.Background())) }

// Slow delays every reply by about this many milliseconds.
func (p *Proxy) Slow(milliseconds int) {
	p.server.t.Helper()
	p.must(p.Delay(context.Background(), milliseconds))
}

// Shorten closes each connection after this many bytes of replies, in the middle
// of a reply sooner or later.
func (p *Proxy) Shorten(size int) {
	p.server.t.Helper()
	p.must(p.Truncate(context.Background(), size))
}

// Reset resets connections, as a crash of the peer does, this many milliseconds
// after a reply began: the server has executed the request, but the client
// receives no reply.
func (p *Proxy) Reset(milliseconds int) {
	p.server.t.Helper()
	p.must(p.ResetAtReply(context.Background(), milliseconds))
}

// Stall accepts data and forwards no replies.
func (p *Proxy) Stall() {
	p.server.t.Helper()
	p.must(p.toxic(context.Background(), "timeout", downstream, map[string]int{"timeout": 0}))
}

// Disable is Cut for a caller that handles the error.
func (p *Proxy) Disable(ctx context.Context) error {
	return p.server.call(ctx, http.MethodPost, p.path, map[string]any{"enabled": false})
}

// Delay is Slow for a caller that handles the error.
func (p *Proxy) Delay(ctx context.Context, milliseconds int) error {
	return p.toxic(ctx, "latency", downstream, map[string]int{"latency": milliseconds, "jitter": milliseconds / 2})
}

// Truncate is Shorten for a caller that handles the error.
func (p *Proxy) Truncate(ctx context.Context, size int) error {
	return p.toxic(ctx, "limit_data", downstream, map[string]int{"bytes": size})
}

// ResetAtReply is Reset for a caller that handles the error.
func (p *Proxy) ResetAtReply(ctx context.Context, milliseconds int) error {
	return p.toxic(ctx, "reset_peer", downstream, map[string]int{"timeout": milliseconds})
}

// Drop forwards nothing in either direction, and closes no connection until Clear does.
func (p *Proxy) Drop(ctx context.Context) error {
	return errors.Join(p.toxic(ctx, "timeout", downstream, map[string]int{"timeout": 0}),
		p.toxic(ctx, "timeout", "upstream", map[string]int{"timeout": 0}))
}

// Clear is Heal for a caller that handles the error.
func (p *Proxy) Clear(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.toxics) > 0 {
		if err := p.server.call(ctx, http.MethodDelete, p.toxics[0], nil); err != nil {
			return err
		}
		p.toxics = p.toxics[1:]
	}
	return p.server.call(ctx, http.MethodPost, p.path, map[string]any{"enabled": true})
}

// downstream is the direction of replies.
const downstream = "downstream"

func (p *Proxy) toxic(ctx context.Context, kind, stream string, attributes map[string]int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	name := strconv.Itoa(p.count)
	err := p.server.call(ctx, http.MethodPost, p.path+"/toxics",
		map[string]any{"name": name, "type": kind, "stream": stream, "attributes": attributes})
	if err == nil {
		p.toxics = append(p.toxics, p.path+"/toxics/"+name)
	}
	return err
}

func (p *Proxy) must(err error) {
	p.server.t.Helper()
	if err != nil {
		p.server.t.Fatalf("the proxy: %v", err)
	}
}

func (s *Proxies) call(ctx context.Context, method, path string, body map[string]any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.api+path, bytes.NewReader(data))
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
