package objects_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/test/kit"
)

// A page is in memory until its client has read it. Here 12 clients of different
// addresses ask for all there is, 4 MiB of it on a page, and read nothing.
func TestClientsThatReadNothingCostLittleMemory(t *testing.T) {
	const clients, limit = 12, 32 << 20
	f := apitest.Start(t,
		func(o *api.Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} },
		func(s *http.Server) {
			// What the kernel buffers is not in the memory of the process: here it is little.
			s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
				if err := c.(*net.TCPConn).SetWriteBuffer(8 << 10); err != nil {
					t.Error(err)
				}
				return ctx
			}
		})
	const stored = 18
	for i := range stored {
		o := object.Object{"text": []byte(`"` + strings.Repeat("x", 250_000) + `"`)}
		if _, err := f.Books.Save(t.Context(), o, fmt.Sprintf("b%02d", i)); err != nil {
			t.Fatal(err)
		}
	}
	all := func() int {
		var p page
		f.Do("GET", "/books?limit=500", "").Want(200).JSON(&p)
		return len(p.Items)
	}
	full := all() // what a page has while nobody else lists
	before := heap()

	var dialer net.Dialer
	var stalled []net.Conn
	for i := range clients {
		c, err := dialer.DialContext(t.Context(), "tcp", f.Listener.Addr().String())
		f.Must(err)
		t.Cleanup(func() { _ = c.Close() })
		f.Must(c.(*net.TCPConn).SetReadBuffer(8 << 10))
		_, err = fmt.Fprintf(c, "GET /books?limit=500 HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: 198.51.100.%d\r\n\r\n",
			f.Listener.Addr(), i+1)
		f.Must(err)
		// The first byte of the reply says that the page is being sent.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		stalled = append(stalled, c)
	}
	after := heap()
	t.Logf("%d clients that read nothing cost %d KiB", clients, (after-before)>>10)
	if after-before > limit {
		t.Errorf("%d clients that read nothing cost %d bytes of memory, want at most %d", clients, after-before, limit)
	}
	if n := all(); n == 0 || n > full {
		t.Errorf("beside them a page has %d objects", n)
	}
	for _, c := range stalled {
		f.Must(c.Close())
	}
	kit.WaitFor(t, "the memory of clients that left to be used again", func() bool { return all() == full })
}

// heap returns how many bytes of the heap are reachable.
func heap() int64 {
	runtime.GC() // twice: what has a finalizer, or is in a pool, goes with the second
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}
