package e2e

import (
	"errors"
	"io"
	"os"
	"testing"
)

// Clients that send half a request don't delay others, and those that never finish
// their headers are disconnected.
func TestSlowClientsDelayNoOthers(t *testing.T) {
	t.Parallel()
	s := served(t, books)
	var headers []*wire
	for range 100 {
		slow := dial(t, s)
		if _, err := io.WriteString(slow, "POST /books HTTP/1.1\r\nHost: localhost\r\nX-Slow: "); err != nil {
			t.Fatal(err)
		}
		headers = append(headers, slow)
		if _, err := io.WriteString(dial(t, s), head("POST", "/books", "Content-Length: 100")+`{"title":`); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		unharmed(t, s)
	}
	for _, slow := range headers {
		if _, err := io.Copy(io.Discard, slow); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a client that never finishes its headers is not disconnected")
		}
	}
	unharmed(t, s)
}
