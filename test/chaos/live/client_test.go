package live

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// client reads /events, and reconnects with its last id after a disconnect.
type client struct {
	address string // host:port of belfry
	query   string
	token   string // of a session; "" for an anonymous client

	mu    sync.Mutex
	conn  net.Conn
	ids   []string // in the data of the events, in the order received
	last  string   // the id that it would resume with
	err   error    // the first failure
	ended bool     // end was called

	onReset func() // called with mu held; nil: a reset is a failure
}

// run reads until end is called.
func (c *client) run() {
	for {
		err := c.listen()
		c.mu.Lock()
		ended := c.ended
		if err != nil && !ended && c.err == nil {
			c.err = err
		}
		c.mu.Unlock()
		if ended || err != nil {
			return
		}
	}
}

// cut breaks the connection as a bad network would; the client reconnects.
func (c *client) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

func (c *client) end() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	c.cut()
}

// listen reads one stream. A disconnect is no error.
func (c *client) listen() error {
	conn, err := net.Dial("tcp", c.address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	c.mu.Lock()
	c.conn = conn
	request := "GET /events" + c.query + " HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
	if c.token != "" {
		request += "Authorization: Bearer " + c.token + "\r\n"
	}
	if c.last != "" {
		request += "Last-Event-ID: " + c.last + "\r\n"
	}
	ended := c.ended
	c.mu.Unlock()
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil || ended {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16<<10), nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	return c.read(res.Body)
}

// read reads the blocks of a stream.
func (c *client) read(body io.Reader) error {
	var rest []byte
	buffer := make([]byte, 16<<10)
	for {
		n, err := body.Read(buffer)
		rest = append(rest, buffer[:n]...)
		for {
			end := bytes.Index(rest, []byte("\n\n"))
			if end < 0 {
				break
			}
			if err := c.take(rest[:end]); err != nil {
				return err
			}
			rest = rest[end+2:]
		}
		if err != nil {
			return nil //nolint:nilerr // it was cut
		}
	}
}

func (c *client) take(block []byte) error {
	text, found := bytes.CutPrefix(bytes.TrimPrefix(block, []byte(":\n")), []byte("id: "))
	if !found {
		return nil // a comment, or retry
	}
	id, text, isEvent := bytes.Cut(text, []byte("\nevent: "))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = string(id)
	if !isEvent || bytes.HasPrefix(text, []byte("ready\n")) {
		return nil
	}
	if bytes.HasPrefix(text, []byte("reset\n")) && c.onReset != nil {
		c.onReset()
		return nil
	}
	if !bytes.HasPrefix(text, []byte("Store.")) {
		return fmt.Errorf("unexpected block: %.200s", text)
	}
	_, data, _ := bytes.Cut(text, []byte(`{"id":"`))
	event, _, found := bytes.Cut(data, []byte(`"`))
	if !found {
		return fmt.Errorf("an event without an id: %.200s", text)
	}
	c.ids = append(c.ids, string(event))
	return nil
}

// state returns the progress of the client.
func (c *client) state() (events int, last string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ids), c.last, c.err
}

// equal compares the received events with the expected ones.
func (c *client) equal(want []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range max(len(want), len(c.ids)) {
		if i >= len(want) || i >= len(c.ids) || c.ids[i] != want[i] {
			at := func(list []string) string {
				return strings.Trim(fmt.Sprint(list[min(i, len(list)):min(i+3, len(list))]), "[]")
			}
			return fmt.Errorf("received %d events of %d; from the %dth on %s..., want %s...", len(c.ids), len(want),
				i+1, at(c.ids), at(want))
		}
	}
	return nil
}
