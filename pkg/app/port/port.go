// Package port serves HTTP on ports besides the port for clients: for metrics, redirects and commands.
package port

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Port serves a port besides the port for clients.
type Port struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	handling sync.RWMutex
}

// Serve serves a port, and calls failed if serving ends by itself.
func Serve(server *http.Server, listener net.Listener, failed func(error)) *Port {
	p := &Port{listener: listener, server: server, done: make(chan struct{})}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !p.handling.TryRLock() {
			http.Error(w, "belfry is stopping", http.StatusServiceUnavailable)
			return
		}
		defer p.handling.RUnlock()
		handler.ServeHTTP(w, r)
	})
	go func() {
		defer close(p.done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	return p
}

// Overlaps reports whether an address can't be listened on because the port already does on another address of the same
// number, as 127.0.0.1:9100 and :9100. p may be nil.
func (p *Port) Overlaps(address string, err error) bool {
	_, wanted, _ := net.SplitHostPort(address)
	_, own, _ := net.SplitHostPort(p.Address())
	return p != nil && errors.Is(err, syscall.EADDRINUSE) && wanted == own
}

// Address is the address of the port; "" for none.
func (p *Port) Address() string {
	if p == nil {
		return ""
	}
	return p.listener.Addr().String()
}

// Withdraw frees the port, which another configuration may use again at once. Its requests continue until Close. p may
// be nil.
func (p *Port) Withdraw() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.server.Shutdown(ctx) // which does not wait
}

// Close ends the port and its requests. p may be nil.
func (p *Port) Close() error {
	if p == nil {
		return nil
	}
	err := p.server.Close()
	<-p.done
	p.handling.Lock() // waits for the last request: a backup that ends here uses resources that are closed next
	return err
}
