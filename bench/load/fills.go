package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// What is filled: the arrays of parents, from children that were created before the mapping.
const (
	fillParents  = 10_000
	fillChildren = 100_000
)

// filling is a belfry whose clients are measured, on a copy of the same data.
type filling struct {
	*server
	name          string
	creates, gets *comparison
	ran           time.Duration // it is stopped while others are measured
}

// fills measures what clients notice of a fill: creates and gets beside the limit, without a fill, beside one at the
// default rate, and beside one at no limit, in turn, as long as that runs. Whoever has no turn is stopped, also its
// fill.
func (b *bench) fills(ctx context.Context, rounds, requests int) (err error) {
	unmapped := strings.Replace(configuration, `    map:
      Parents: {key: parent, target: children, fields: "title, year", cascade: true, maxBytes: 4MiB}
`, "", 1)
	if unmapped == configuration {
		return errors.New("the configuration has no mapping to leave out")
	}
	limit, err := b.serveLimit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limit.stop()) }()
	data, err := b.fillData(ctx, unmapped)
	if err != nil {
		return err
	}
	var all []*filling
	for _, c := range []struct{ name, configuration string }{
		{"without a fill", unmapped},
		{"beside a fill at the default rate", configuration},
		{"beside a fill at no limit", configuration + "fillRate: 0\n"},
	} {
		s, err := b.serveCopy(ctx, data, c.configuration)
		if err != nil {
			return err
		}
		f := &filling{server: s, name: c.name, creates: &comparison{name: "create, " + c.name},
			gets: &comparison{name: "get, " + c.name}}
		defer func() { err = errors.Join(err, f.signal(syscall.SIGCONT), s.stop()) }()
		if err := f.turn(func() error {
			_, err := closedLoop(s.base, connections, requests, create("/items", "warm"))
			return err
		}); err != nil {
			return err
		}
		all = append(all, f)
	}
	for round, done := 0, false; round < rounds && !done; round++ {
		if done, err = fillRound(limit, all, fmt.Sprint("r", round), requests); err != nil {
			return err
		}
	}
	for _, f := range all {
		f.creates.print()
		f.gets.print()
		if err := f.turn(func() error { f.printFill(); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// fillRound measures everyone, and reports whether a fill is complete.
func fillRound(limit *server, all []*filling, run string, requests int) (done bool, err error) {
	for _, kind := range []struct {
		of  func(f *filling) *comparison
		one func(s *server) (result, error)
	}{
		{func(f *filling) *comparison { return f.creates }, func(s *server) (result, error) {
			return closedLoop(s.base, connections, requests, create("/items", run))
		}},
		{func(f *filling) *comparison { return f.gets }, func(s *server) (result, error) {
			return closedLoop(s.base, connections, requests, get(run, requests))
		}},
	} {
		base, err := takeTurn(limit, kind.one)
		if err != nil {
			return false, err
		}
		for _, f := range all {
			err := f.turn(func() error {
				mine, err := takeTurn(f.server, kind.one)
				kind.of(f).add([2]turn{base, mine})
				filled, _ := fillProgress(f.server)
				done = done || filled
				return err
			})
			if err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

func (f *filling) signal(s syscall.Signal) error { return f.cmd.Process.Signal(s) }

// turn has the server run while it is measured.
func (f *filling) turn(measure func() error) error {
	if err := f.signal(syscall.SIGCONT); err != nil {
		return err
	}
	began := time.Now()
	err := measure()
	f.ran += time.Since(began)
	return errors.Join(err, f.signal(syscall.SIGSTOP))
}

func (f *filling) printFill() {
	done, targets := fillProgress(f.server)
	if targets > 0 {
		objects := targets * (1 + fillChildren/fillParents)
		fmt.Printf("  the fill read %d objects in %s (%.0f/s); complete: %t\n", objects, short(f.ran),
			float64(objects)/f.ran.Seconds(), done)
	}
}

// fillData returns a data folder with what is filled.
func (b *bench) fillData(ctx context.Context, unmapped string) (string, error) {
	s, err := b.serveWith(ctx, unmapped)
	if err != nil {
		return "", err
	}
	for _, c := range []struct {
		path, run string
		n         int
		fields    func(i int) string
	}{
		{"/parents", "p", fillParents, func(int) string { return "" }},
		{"/children", "c", fillChildren,
			func(i int) string { return fmt.Sprintf(`"parent":"p-%08d",`, i%fillParents) }},
	} {
		_, failed := closedLoop(s.base, connections, c.n, func(k *client, i int) error {
			return expect(k, 201, "POST", c.path, object(fmt.Sprintf("%s-%08d", c.run, i), c.fields(i)))
		})
		err = errors.Join(err, failed)
	}
	if err == nil {
		err = published(s, 0)
	}
	// The worker has handled an event after those of the children: it would receive them from the log, at no rate.
	if err == nil {
		_, err = register(ctx, s, 0)
	}
	if err == nil {
		err = published(s, 0)
	}
	if err == nil {
		err = pollUntil(s, metricsPath, func(body []byte) bool {
			return bytes.Contains(body, []byte("belfry_listener_pending{listener=\"mapping\"} 0\n"))
		})
	}
	return s.data, errors.Join(err, s.stop())
}

// serveCopy starts belfry on a copy of a data folder.
func (b *bench) serveCopy(ctx context.Context, data, configuration string) (*server, error) {
	home, err := os.MkdirTemp(b.folder, "serve-")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(home, "data"), os.DirFS(data)); err != nil {
		return nil, err
	}
	return b.serveIn(ctx, home, configuration)
}

// fillProgress reports whether all arrays are filled, and how many this process has filled.
func fillProgress(s *server) (done bool, targets int) {
	filled := `belfry_mapping_filled{array="children",source="Children",target="Parents"} 1`
	_ = pollUntil(s, metricsPath, func(body []byte) bool {
		done = bytes.Contains(body, []byte(filled))
		for line := range strings.Lines(string(body)) {
			if value, ok := strings.CutPrefix(line, "belfry_mapping_fill_targets_total "); ok {
				n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
				targets = int(n)
			}
		}
		return true
	})
	return done, targets
}
