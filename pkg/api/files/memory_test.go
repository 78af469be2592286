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
	"belfry/pkg/binary/driver"
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

// Parts that are sent at once leave half of the memory to uploads that begin.
func TestPartsUseHalfOfTheMemory(t *testing.T) {
	m := files.NewMemoryOf(20, 12, time.Minute)
	take := func(address string, bytes int64, want bool) {
		t.Helper()
		if got := files.BudgetOf(m, address).TryReserve(bytes); got != want {
			t.Errorf("%d more bytes for %s: %v, want %v", bytes, address, got, want)
		}
	}
	release, err := files.Reserve(t.Context(), m, "ann", 2, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	take("ann", 5, false) // above half of what an address may use
	take("ann", 4, true)
	take("ann", 1, false)
	take("bob", 5, false) // above half of all
	take("bob", 4, true)
	take("eve", 1, false)
	again, err := files.Reserve(t.Context(), m, "ann", 6, func() error { return nil })
	if err != nil {
		t.Errorf("an upload that begins: %v", err)
	}
	again()
	release()
	files.BudgetOf(m, "ann").Release(4)
	files.BudgetOf(m, "bob").Release(4)
	if used, _ := m.Used(); used != 0 {
		t.Errorf("%d bytes are still reserved", used)
	}
}

// partsStorage is a storage whose stages take memory from their budget.
type partsStorage struct {
	driver.Storage
	bytes int64
	taken func()
}

func (s *partsStorage) Buffered(int64) int64 { return 1000 }

func (s *partsStorage) StageWithin(ctx context.Context, budget driver.Budget) (driver.Staged, error) {
	staged, err := s.Stage(ctx)
	if err != nil || !budget.TryReserve(s.bytes) {
		return staged, errors.Join(err, errors.New("no memory is left"))
	}
	s.taken()
	return &partsStage{staged, func() { budget.Release(s.bytes) }}, nil
}

type partsStage struct {
	driver.Staged
	release func()
}

func (s *partsStage) Discard() {
	s.release()
	s.Staged.Discard()
}

func TestPartsOfAnUploadCountAsItsMemory(t *testing.T) {
	m := files.NewMemoryOf(16<<20, 8<<20, time.Minute)
	parts := &partsStorage{bytes: 1 << 20}
	var during int64
	parts.taken = func() { during, _ = m.Used() }
	l := startLibrary(t, func(o *binary.Options, f *files.Options) {
		parts.Storage, o.Storage, f.Memory = o.Storage, parts, m
	})
	l.add("texts", "a text")
	if want := int64(1<<20 + 128<<10 + 1000); during != want {
		t.Errorf("%d bytes were reserved during an upload, want %d", during, want)
	}
	if used, _ := m.Used(); used != 0 {
		t.Errorf("%d bytes are reserved after an upload", used)
	}
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
