package httpkit_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/test/kit"
)

// Once a stop has ended the bodies, no read of one waits for its client, also of a request that begins then: a
// connection may have been accepted before.
func TestABodyThatBeginsAfterTheEndOfAllIsNotRead(t *testing.T) {
	t.Parallel()
	cut, end := context.WithCancel(t.Context())
	f := apitest.Start(t, func(o *api.Options) { o.Cut = cut }, func(s *http.Server) { s.ReadTimeout = kit.Limit })
	f.Create("emma")
	end()
	kit.WaitFor(t, "the end of bodies",
		func() bool { return f.Do("POST", "/books", "{}").StatusCode == http.StatusServiceUnavailable })
	f.Do("POST", "/books", "{}").Want(http.StatusServiceUnavailable).HasHeader("Retry-After", "5")
	f.Do("GET", "/books/emma", "").Want(http.StatusOK)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.Listener.Addr().String())
	f.Must(err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "POST /books HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"uuid\":")
	f.Must(err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	f.Must(err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusServiceUnavailable || !res.Close {
		t.Errorf("%s, close %t", res.Status, res.Close)
	}
}
