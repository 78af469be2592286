package objects

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// connection is a client that sends 1,000 bytes at a time, and counts the reads that have no deadline of their own.
type connection struct {
	http.ResponseWriter
	rest     io.Reader
	deadline bool // set since the last read
	reads    int
	stale    int
}

func (c *connection) SetReadDeadline(t time.Time) error {
	c.deadline = !t.IsZero()
	return nil
}

func (c *connection) Read(p []byte) (int, error) {
	c.reads++
	if !c.deadline {
		c.stale++
	}
	c.deadline = false
	return c.rest.Read(p[:min(len(p), 1000)])
}

// What was read last ends within a line nearly always. A deadline that only an empty buffer renewed ended streams that
// took longer than it, though their clients sent all the time.
func TestEachReadOfAStreamHasADeadlineOfItsOwn(t *testing.T) {
	const lines = 500
	c := &connection{ResponseWriter: httptest.NewRecorder(),
		rest: strings.NewReader(strings.Repeat(`{"t":"`+strings.Repeat("x", 1001)+`"}`+"\n", lines))}
	s := &stream{control: http.NewResponseController(c), ending: context.Background()}
	s.lines = newLineReader(&timedBody{s, c})
	for n := 0; ; n++ {
		_, err := s.readLine()
		if err == nil {
			continue
		}
		if !errors.Is(err, io.EOF) || n != lines {
			t.Fatalf("%v after %d lines", err, n)
		}
		break
	}
	if c.stale > 0 || c.reads < lines {
		t.Errorf("%d of %d reads have the deadline of one before", c.stale, c.reads)
	}
}
