package files_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/api/files"
	"belfry/pkg/binary"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/kit"
)

func TestUploadsWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := files.NewMemoryOf(10, 6, time.Minute)
		reserve := func(address string, bytes int64, check error) (func(), error) {
			return files.Reserve(t.Context(), m, address, bytes, func() error { return check })
		}
		must := func(release func(), err error) func() {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first := must(reserve("ann", 5, nil))
		began := time.Now()
		if _, err := reserve("ann", 2, nil); !errors.Is(err, errs.Limited) || time.Since(began) != time.Minute {
			t.Errorf("more than the share of an address: %v after %s", err, time.Since(began))
		}
		other := must(reserve("bob", 5, errors.New("is not asked while there is memory")))
		began = time.Now()
		if _, err := reserve("eve", 1, nil); !errors.Is(err, errs.Unavailable) || time.Since(began) != time.Minute {
			t.Errorf("more than there is: %v after %s", err, time.Since(began))
		}
		denied := errors.New("denied")
		if _, err := reserve("eve", 1, denied); !errors.Is(err, denied) || time.Since(began) != time.Minute {
			t.Errorf("who may not upload waits: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := files.Reserve(ctx, m, "eve", 1, func() error { return nil }); !errors.Is(err, errs.Canceled) {
			t.Errorf("who has left waits: %v", err)
		}
		time.AfterFunc(time.Second, first)
		must(reserve("eve", 3, nil))()
		other()
		must(reserve("ann", 100, nil))() // larger than the share: alone
	})
}

// A storage of S3 has up to 5 MiB of each upload in memory until they can be sent. Here
// clients send nearly that, and then nothing.
func TestClientsThatHoldUploadsOpenCostLittleMemory(t *testing.T) {
	const clients, size, share = 10, 2 << 20, 5 << 20
	unused, err := s3storage.Open(t.Context(), s3storage.Options{
		Bucket: "unused", Region: "eu-central-1", Endpoint: "http://127.0.0.1:1", AccessKey: "x", SecretKey: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unused.Close() })
	l := startLibrary(t, func(o *binary.Options, f *files.Options) {
		o.Storage, o.MaxSize = unused, size
		f.Memory, f.Patience = files.NewMemoryOf(2*share, share, 100*time.Millisecond), kit.Limit
	})
	before := heap()
	replies := make(chan string, clients)
	var open []net.Conn
	for range clients {
		c := l.Dial()
		open = append(open, c)
		go func() {
			_, _ = fmt.Fprintf(c, uploading+"Content-Length: %d\r\n\r\n", size)
			// Who is refused may be disconnected meanwhile.
			_, _ = io.WriteString(c, strings.Repeat("x", size-1))
			reply, _ := bufio.NewReader(c).ReadString('\n')
			replies <- reply
		}()
	}
	const fit = share / (size + 128<<10)
	for range clients - fit {
		if reply := <-replies; !strings.Contains(reply, " 429 ") {
			t.Errorf("more uploads than there is memory for: %q", reply)
		}
	}
	kit.WaitFor(t, "the other uploads have arrived", func() bool { return heap()-before > fit*(size-1) })
	if grown := heap() - before; grown > share+2<<20 {
		t.Errorf("%d clients that hold uploads open cost %d bytes, want at most %d", clients, grown, share)
	}
	for _, c := range open {
		l.Must(c.Close())
	}
	kit.WaitFor(t, "the memory is free", func() bool {
		c := l.Dial()
		defer func() { l.Must(c.Close()) }()
		_, err := fmt.Fprintf(c, uploading+"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
		l.Must(err)
		resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "PUT"})
		return err == nil && resp.StatusCode == http.StatusContinue
	})
}

// heap returns how many bytes of the heap are reachable.
func heap() int64 {
	runtime.GC() // twice: what has a finalizer, or is in a pool, goes with the second
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far below
}
