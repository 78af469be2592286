package bus

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"belfry/test/kit"
)

// A server sends its greeting and a refusal, and closes the connection. The refusal is in the error that the client
// gets, whether it reads or writes next, and whether or not it has read the refusal, which it discards.
func TestARefusalIsInTheErrorThatFollows(t *testing.T) {
	const greeting, refusal = "INFO {}\r\n", "-ERR 'maximum connections exceeded'\r\n"
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	dial := func() net.Conn {
		t.Helper()
		c, err := newDialer(kit.Limit).Dial("tcp", server.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		s, err := server.Accept()
		if err == nil {
			_, err = io.WriteString(s, greeting+refusal)
		}
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "maximum connections exceeded") {
			t.Errorf("the client gets %v", err)
		}
	}
	read := func(c net.Conn, n int) {
		t.Helper()
		if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}

	c := dial()
	read(c, len(greeting)+len(refusal))
	_, err = c.Read(make([]byte, 10))
	refused(err)

	for _, n := range []int{len(greeting) + len(refusal), len(greeting)} {
		c = dial()
		read(c, n)
		for err = nil; err == nil; {
			_, err = io.WriteString(c, "PING\r\n")
			if c, ok := c.(*refusable); ok {
				c.writes.Store(0) // the system decides which write fails
			}
		}
		refused(err)
	}

	// A connection that was accepted has no refusal.
	c, err = newDialer(kit.Limit).Dial("tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "exceeded") {
		t.Errorf("a closed connection: %v", err)
	}
}

// A command that reaches no server says why: the client itself knows only that it has reached nobody.
func TestWhyNoServerCanBeReached(t *testing.T) {
	for url, want := range map[string]string{
		fmt.Sprint("nats://127.0.0.1:", kit.FreePort(t)): "connection refused",
		"nats://nowhere.invalid:4222":                    "lookup nowhere.invalid",
	} {
		if _, err := Dial(Options{URL: url, Auth: Auth{User: "belfry", Password: "s3cret"}}); err == nil ||
			!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "can't connect to the bus at "+url) ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
