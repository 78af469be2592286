package kit

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Systems take the ports of their own connections from above last (Linux from
// 32768, others from 49152), so none takes a server's while that is stopped.
const first, last = 16000, 32000

// FreePort returns a loopback port that was free a moment ago, and that no other call returns until the test ends, in
// any process: a test often takes all its ports before the first server listens on one.
func FreePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := first + rand.N(last-first)
		if err = reserve(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free: %v", first, last, err)
	return 0
}

// reserve takes the UDP port until the test ends, which no server of a test uses, if nobody listens on the TCP port. It
// does not listen itself to find that out: a program that is being started meanwhile has the socket too until it runs,
// and the port is in use as long.
func reserve(t testing.TB, address string) error {
	t.Helper()
	reserved, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	if c, err := net.Dial("tcp", address); err == nil {
		return errors.Join(errInUse, c.Close(), reserved.Close())
	}
	t.Cleanup(func() { _ = reserved.Close() })
	return nil
}

var errInUse = errors.New("in use")
