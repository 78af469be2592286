package bus

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// A server that refuses a client says why and closes the connection at once, often before the client has sent anything.
// The client misses the reason then: it discards data that arrives together with the server's greeting, and reads
// nothing more when it can't write. So the connections of a dialer keep the reason, and have it in the error that ends
// the attempt.

const (
	// firstWrites is how many writes the client makes, with its CONNECT and a PING, before it reads more than the
	// greeting.
	firstWrites = 2

	refusalTimeout = 100 * time.Millisecond // for a reason that has most likely arrived
	maxRefusal     = 4 << 10                // bytes that are read of it
)

// dialer opens connections for the client.
type dialer struct {
	net.Dialer
	// why the last connection was not opened: the client has lost that when it has tried all servers
	failed atomic.Pointer[error]
}

func newDialer(timeout time.Duration) *dialer { return &dialer{Dialer: net.Dialer{Timeout: timeout}} }

// reason returns why no server could be reached, if that is what an error of the client says.
func (d *dialer) reason(err error) error {
	if failed := d.failed.Load(); failed != nil && errors.Is(err, nats.ErrNoServers) {
		return *failed
	}
	return err
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	c, err := d.Dialer.Dial(network, address)
	if err != nil {
		d.failed.Store(&err)
		return nil, err
	}
	return &refusable{Conn: c}, nil
}

// refusable is a connection whose server may refuse it.
type refusable struct {
	net.Conn
	writes atomic.Int32 // that have succeeded, up to firstWrites
	reason atomic.Pointer[string]
}

// Read implements net.Conn.
func (c *refusable) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.writes.Load() == 0 {
		c.note(p[:n])
	}
	return n, c.explain(err)
}

// Write implements net.Conn. While the first writes are made nobody reads.
func (c *refusable) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	switch first := c.writes.Load() < firstWrites; {
	case err == nil && first:
		c.writes.Add(1)
	case err != nil && first && c.reason.Load() == nil:
		_ = c.SetReadDeadline(time.Now().Add(refusalTimeout))
		rest := make([]byte, maxRefusal)
		read, _ := c.Conn.Read(rest)
		c.note(rest[:read])
	}
	return n, c.explain(err)
}

// note keeps the error that a server has sent.
func (c *refusable) note(text []byte) {
	if _, sent, found := bytes.Cut(text, []byte("-ERR ")); found {
		sent, _, _ = bytes.Cut(sent, []byte("\r\n"))
		reason := strings.Trim(string(sent), "'")
		c.reason.Store(&reason)
	}
}

// explain adds the reason of the server to an error.
func (c *refusable) explain(err error) error {
	if reason := c.reason.Load(); err != nil && reason != nil {
		return fmt.Errorf("%s: %w", *reason, err)
	}
	return err
}
