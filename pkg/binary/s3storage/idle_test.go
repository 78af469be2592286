package s3storage

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// A transfer may take longer than the idle timeout as long as bytes arrive. Once
// they stop, it fails.
func TestIdleTimeoutIsPerByteNotPerTransfer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout, pieces = time.Second, 50
		near, far := net.Pipe()
		defer func() { _ = near.Close() }()
		conn := &idleConn{near, timeout}
		go func() {
			for range pieces {
				time.Sleep(timeout * 9 / 10)
				if _, err := far.Write([]byte("x")); err != nil {
					t.Error(err)
				}
			}
		}()
		start := time.Now()
		for range pieces {
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatalf("after %s: %v", time.Since(start), err)
			}
		}
		_, err := conn.Read(make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read of an idle connection returned %v", err)
		}
		_, err = conn.Write([]byte("x"))
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a write to an idle connection returned %v", err)
		}
		if took, want := time.Since(start), pieces*timeout*9/10+2*timeout; took != want {
			t.Errorf("it took %s, want %s", took, want)
		}
	})
}
