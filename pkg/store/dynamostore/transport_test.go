package dynamostore_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/test/backing"
)

// TestRequestIsOneWrite reads from the connections of a backend: each read returns a request
// with its body.
func TestRequestIsOneWrite(t *testing.T) {
	t.Parallel()
	front := newTunnel(t, strings.TrimPrefix(backing.Dynoxide(t).URL, "http://"))
	s := openStore(t, openBackend(t, options("http://"+front.Addr().String())), byColor)
	for i := range uint64(20) {
		s.put(write("a", i, i+1, body("red")))
	}
	if complete, other := front.complete.Load(), front.other.Load(); complete < 20 || other > 0 {
		t.Errorf("%d reads return a request, and %d a part of one; want all", complete, other)
	}
}

// tunnel forwards connections to a server and counts what is read from them.
type tunnel struct {
	net.Listener
	complete, other atomic.Int64
}

func newTunnel(t *testing.T, server string) *tunnel {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	front := &tunnel{Listener: listener}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go front.forward(client, server)
		}
	}()
	return front
}

// forward forwards until either side ends.
func (f *tunnel) forward(client net.Conn, address string) {
	defer client.Close() //nolint:errcheck // it has ended
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // it has ended
	go func() { _, _ = io.Copy(client, server) }()
	for buffer := make([]byte, 64<<10); ; {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if isRequest(buffer[:n]) {
			f.complete.Add(1)
		} else {
			f.other.Add(1)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func isRequest(data []byte) bool {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}
