package api_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/test/kit"
)

// A body that no handler reads, of a request that is refused, keeps no server from its shutdown: net/http would read it
// away before it sends the reply, until its time for that is over.
func TestABodyThatNobodyReadsEndsWithAStop(t *testing.T) {
	cut, end := context.WithCancel(t.Context())
	registry := prometheus.NewRegistry()
	server := api.New(api.Options{Cut: cut, Registry: registry}).HTTPServer()
	server.ReadTimeout = kit.Limit
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	open := map[string]net.Conn{}
	for _, head := range []string{
		"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"POST /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n",
		"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, head+"body"); err != nil {
			t.Fatal(err)
		}
		open[head] = conn
	}
	kit.WaitFor(t, "the requests", func() bool {
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			if family.GetName() == "belfry_http_requests_in_flight" {
				return family.GetMetric()[0].GetGauge().GetValue() == float64(len(open))
			}
		}
		return false
	})
	end()
	if err := server.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	<-served
	for head, conn := range open {
		text, _ := io.ReadAll(bufio.NewReader(conn))
		if reply := string(text); strings.Count(reply, "HTTP/1.1 ") != 1 ||
			!strings.Contains(reply, "\r\nConnection: close\r\n") {
			t.Errorf("%q: %s", head, reply)
		}
	}
}
