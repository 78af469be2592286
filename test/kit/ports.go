package kit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Systems take the ports of their own connections from above last (Linux from
// 32768, others from 49152), so none takes a server's while that is stopped.
const first, last = 16000, 32000

// FreePort returns a loopback port that was free a moment ago.
func FreePort(t testing.TB) int {
	t.Helper()
	var err error
	for range 100 {
		port := first + rand.N(last-first)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			continue
		}
		if err = l.Close(); err == nil {
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free: %v", first, last, err)
	return 0
}
