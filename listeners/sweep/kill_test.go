package sweep_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// A test binary with this variable in its environment works on a folder until it
// is killed, or its parent ends.
const childFolder = "BELFRY_TEST_FOLDER"

func TestMain(m *testing.M) {
	folder := os.Getenv(childFolder)
	if folder == "" {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(1)
	}()
	fmt.Println(churn(context.Background(), folder))
	os.Exit(1)
}

// discard is an outbox that drops every event.
type discard struct{}

func (discard) Committed(string, driver.Pending) {}

// churn uploads and deletes binaries while a sweeper runs, and prints what has
// been acknowledged: "<book> <hash>". It returns the first error.
func churn(ctx context.Context, folder string) error {
	o, _, err := assemble(ctx, options{folder: folder, grace: 300 * time.Millisecond}, discard{})
	if err != nil {
		return err
	}
	s := binary.New(o)
	worker, err := sweep.NewWorker([]*binary.Service{s}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	loop := func(act func() error) {
		go func() {
			for {
				if err := act(); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	var printing sync.Mutex
	for i := range 4 {
		stable, changing := fmt.Sprint("stable", i), fmt.Sprint("changing", i)
		for _, book := range []string{stable, changing} {
			if _, err := o.Set.Store("Books").Save(ctx, object.Object{}, book); err != nil &&
				!errors.Is(err, errs.Exists) {
				return err
			}
		}
		loop(func() error {
			text := fmt.Sprint("text ", rand.IntN(40))
			if err := add(ctx, s, "Books", stable, text); err != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(stable, hashOf(text))
			return nil
		})
		loop(func() error {
			text := fmt.Sprint("text ", rand.IntN(40))
			if err := put(ctx, s, place("Books", changing, 0), text); err != nil {
				return err
			}
			_, err := s.Delete(ctx, place("Books", changing, 0), hashOf(text))
			return err
		})
	}
	loop(func() error { return worker.SweepAll(ctx) })
	return <-failed
}

// A process that uploads, deletes and sweeps is killed at random moments. Every
// record has its content, every acknowledged upload exists, and the garbage is
// collected.
func TestSoakKilledProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	acknowledged := map[string]map[string]bool{}
	n := 0
	run := kit.Soak(t, 2)
	for run.More() {
		n += killWhileChurning(t, folder, run.Rand().IntN(40), acknowledged)
	}
	if n < run.Round() {
		t.Errorf("only %d uploads were acknowledged", n)
	}
	f := newFixture(t, options{folder: folder})
	for book, hashes := range acknowledged {
		o, err := f.set.Store("Books").Get(t.Context(), book)
		f.must(err)
		object.Elements(object.Field(o.Body, "photos"), func(record []byte) bool {
			hash, _ := object.Text(object.Field(record, "hash"))
			delete(hashes, hash)
			return true
		})
		for hash := range hashes {
			t.Errorf("%s has lost the acknowledged content %s", book, hash)
		}
	}
	report, err := binary.Verify(t.Context(), []*binary.Service{f.Service}, binary.VerifyOptions{Deep: true})
	f.must(err)
	if !report.Clean() {
		t.Errorf("%+v", report.Differences)
	}
	f.ahead.Add(int64(48 * time.Hour))
	f.converge()
}

// killWhileChurning kills the child after it has acknowledged some uploads, and
// returns their number.
func killWhileChurning(t *testing.T, folder string, after int, acknowledged map[string]map[string]bool) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+folder)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); n++ {
		book, hash, ok := strings.Cut(lines.Text(), " ")
		switch {
		case !strings.HasPrefix(book, "stable"):
			t.Fatalf("the child failed: %s", lines.Text())
		case ok && len(hash) == 64: // the last line may be cut
			if acknowledged[book] == nil {
				acknowledged[book] = map[string]bool{}
			}
			acknowledged[book][hash] = true
		}
		if n == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended before it was killed")
	}
	return n
}
