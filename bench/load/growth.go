package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// The load of the growth measurement.
const (
	growthSmall    = 10_000 // objects that every larger number is compared with
	growthRounds   = 11
	growthCreates  = 2_000 // of a turn: few, so that the small store stays small
	growthGets     = 20_000
	growthLists    = 2_000
	growthEntries  = 400
	growthMost     = 1.3 // times what an operation takes with few objects
	growthReady    = time.Second
	growthResident = 300 << 20 // of verify
	growthVerified = 200_000   // objects a second
	perParent      = 100       // children
	growthPage     = 30
)

const growthStores = serving + `  Parents: {expose: {}}
  Children:
    expose: {list: true}
    indexes: ["parent, year"]
    map:
      Parents: {key: parent, target: children, fields: "title, year", cascade: true}
`

// growth measures what operations cost in a store with few objects and in one with many, in turn, for ten times as many
// each time, and what a start and a verification take.
func (b *bench) growth(ctx context.Context, most int) (err error) {
	if most == 0 {
		return nil
	}
	few, err := b.serveChildren(ctx, growthSmall)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, few.stop()) }()
	if err := b.grownAlone(ctx, growthSmall); err != nil {
		return err
	}
	for total := 10 * growthSmall; total <= most; total *= 10 {
		if err := b.grown(ctx, few, total); err != nil {
			return fmt.Errorf("%d objects: %w", total, err)
		}
		if err := b.writePoints(); err != nil {
			return err
		}
	}
	return nil
}

// grownAlone measures a start and a verification of few objects.
func (b *bench) grownAlone(ctx context.Context, total int) error {
	s, err := b.serveChildren(ctx, total)
	if err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	return b.verified(ctx, filepath.Dir(s.data), total)
}

// grown compares a store with many objects with one that has few.
func (b *bench) grown(ctx context.Context, few *server, total int) error {
	began := time.Now()
	many, err := b.serveChildren(ctx, total)
	if err != nil {
		return err
	}
	fmt.Printf("%d objects, created by streams in %s (%.0f/s), with entries in %d arrays:\n",
		total, short(time.Since(began)), float64(total)/time.Since(began).Seconds(), total/perParent)
	if err := b.compareGrown(ctx, few, many, total); err != nil {
		return errors.Join(err, many.stop())
	}
	fmt.Printf("  resident %d MB, at most %d MB\n", many.resident()>>20, many.status("VmHWM")>>20)
	if err := many.stop(); err != nil {
		return err
	}
	return b.verified(ctx, filepath.Dir(many.data), total)
}

// operation is what is measured.
type operation struct {
	name     string
	requests int
	conns    int
	one      func(total int, run string) func(c *client, i int) error
}

var operations = []operation{
	{"create", growthCreates, connections,
		func(_ int, run string) func(c *client, i int) error { return create("/children", run) }},
	{"get", growthGets, connections, func(total int, _ string) func(c *client, i int) error {
		return func(c *client, _ int) error {
			return expect(c, 200, "GET", fmt.Sprintf("/children/c-%08d", rand.IntN(total)), nil)
		}
	}},
	{"list of 30 by an index", growthLists, queryConns, func(total int, _ string) func(c *client, i int) error {
		return func(c *client, _ int) error {
			filter := fmt.Sprintf("parent == %q", parentUUID(rand.IntN(total/perParent)))
			return expect(c, 200, "GET",
				"/children?"+values("filter", filter, "sort", "year", "limit", fmt.Sprint(growthPage)), nil)
		}
	}},
	{"entry of a new object in an array of 100", growthEntries, 4,
		func(total int, run string) func(c *client, i int) error {
			return func(c *client, i int) error {
				return entryOf(c, fmt.Sprintf("e%s-%08d", run, i), parentUUID(rand.IntN(total/perParent)))
			}
		}},
}

// entryOf creates a child and waits until its parent has its entry.
func entryOf(c *client, uuid, parent string) error {
	if err := expect(c, 201, "POST", "/children", object(uuid, `"parent":"`+parent+`",`)); err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(lagLoad.poll) {
		if err := expect(c, 200, "GET", "/parents/"+parent, nil); err != nil {
			return err
		}
		if bytes.Contains(c.body, []byte(`{"uuid":"`+uuid+`"`)) {
			return nil
		}
	}
	return fmt.Errorf("no entry of %s in %s after a minute", uuid, parent)
}

func (b *bench) compareGrown(ctx context.Context, few, many *server, total int) error {
	return b.profiled(ctx, many, fmt.Sprintf("growth-%d", total), profileSeconds, func() error {
		for n, op := range operations {
			grown := &comparison{name: fmt.Sprintf("%s, of %d objects beside %d", op.name, total, growthSmall),
				names: [2]string{"few", "many"}}
			for round := range growthRounds {
				if err := grown.measure([2]*server{few, many}, func(s *server) (result, error) {
					of := total
					if s == few {
						of = growthSmall
					}
					return closedLoop(s.base, op.conns, op.requests,
						op.one(of, fmt.Sprintf("%d-%d-%d", total, n, round)))
				}); err != nil {
					return fmt.Errorf("%s: %w", op.name, err)
				}
				if err := errors.Join(published(few, 0), published(many, 0)); err != nil {
					return err
				}
			}
			grown.print()
			p := growthOf(op.name, total, grown.ratios)
			b.points = append(b.points, p)
			fmt.Printf("  %.2f times as long (goal %.1f): %s\n", p.Times, growthMost, verdict(p.Times <= growthMost))
		}
		return nil
	})
}

// serveChildren starts belfry with this many objects, all of which have their entries in arrays.
func (b *bench) serveChildren(ctx context.Context, total int) (*server, error) {
	s, err := b.serveWith(ctx, growthStores)
	if err != nil {
		return nil, err
	}
	s.pause = 100 * time.Millisecond
	for _, fill := range []struct {
		path  string
		total int
		line  func(i int) []byte
	}{
		{"/parents", total / perParent, func(i int) []byte { return object(parentUUID(i), "") }},
		{"/children", total, func(i int) []byte {
			return object(fmt.Sprintf("c-%08d", i), `"parent":"`+parentUUID(i/perParent)+`",`)
		}},
	} {
		for from := 0; from < fill.total && err == nil; from += queryStream {
			to := min(from+queryStream, fill.total)
			err = createLines(ctx, s.base+fill.path, linesOf(from, to, fill.line), to-from)
			// What waits in the log is bounded, as a listener that lags behind it would miss events.
			if err == nil {
				err = mapped(s)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func parentUUID(n int) string { return fmt.Sprintf("p-%08d", n) }

// mapped waits until the worker has handled the events of all writes.
func mapped(s *server) error {
	if err := published(s, 0); err != nil {
		return err
	}
	return pollUntil(s, metricsPath, func(body []byte) bool {
		return bytes.Contains(body, []byte("belfry_listener_pending{listener=\"mapping\"} 0\n"))
	})
}

// verified measures a start, and a verification of a folder that nobody serves.
func (b *bench) verified(ctx context.Context, home string, total int) error {
	s, err := b.serveIn(ctx, home, growthStores)
	if err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	idle := s.resident()
	fmt.Printf("  start with %d objects: ready after %s (goal %s): %s; resident %d MB\n", total, short(s.ready),
		growthReady, verdict(s.ready <= growthReady), idle>>20)
	if err := s.stop(); err != nil {
		return err
	}
	verify := exec.CommandContext(ctx, b.belfry, "verify", "--config", filepath.Join(home, "belfry.yaml"))
	began := time.Now()
	out, err := verify.CombinedOutput()
	if err != nil {
		return fmt.Errorf("belfry verify: %w: %s", err, out)
	}
	took := time.Since(began)
	usage, _ := verify.ProcessState.SysUsage().(*syscall.Rusage)
	resident := usage.Maxrss << 10
	rate := float64(total) / took.Seconds()
	stores, err := bytesOf(filepath.Join(home, "data", "stores"))
	if err != nil {
		return err
	}
	log, err := bytesOf(filepath.Join(home, "data", "bus"))
	if err != nil {
		return err
	}
	fmt.Printf("  verify: %s, %.0f objects/s (goal %d): %s; at most %d MB resident (goal %d): %s\n", short(took), rate,
		growthVerified, verdict(rate >= growthVerified),
		resident>>20, growthResident>>20, verdict(resident <= growthResident))
	fmt.Printf("  on disk: %d MB of stores (%d bytes an object), %d MB of the log\n", stores>>20, stores/int64(total),
		log>>20)
	return os.RemoveAll(home)
}

// bytesOf is the size of the files in a folder, without those that are removed meanwhile.
func bytesOf(folder string) (total int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}
