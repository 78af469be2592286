// Command load measures belfry. Every figure is measured together with a limit
// program (bench/load/limit), so that the ratio is meaningful on a slow, shared or
// noisy machine. It exits after a few minutes.
//
// The load generator, belfry and the limit program are processes of their own
// and share the machine's processors. It runs in the folder bench: `go run -C bench ./load`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
)

func main() {
	rounds := flag.Int("rounds", 11, "rounds of belfry and the limit; the median is reported")
	requests := flag.Int("requests", 40_000, "requests of each kind in a round")
	million := flag.Int("million",
		1_000_000, "creates before memory is measured again, and objects of a store of the console, of queries and "+
			"of growth; 0 skips these")
	only := flag.String("only",
		"", "run one part: rates, peers, containers, streams, lag, parent, logins, memory, lists, query, hidden, "+
			"files, s3, fills, listener, backends, console, grid, users, costs, "+
			"growth, arrays, copies, scale, scale-mongodb")
	profile := flag.String("profile", "", "folder for processor profiles of belfry, one a part; of scale one a point")
	parents := flag.Int("parents", 50, "parents with full arrays of the part arrays; 0 skips these")
	file := flag.Int("file", 256, "size of the file of the part s3 in MiB")
	points := flag.String("json", "", "file for what the parts scale and growth have measured, as JSON")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *rounds, *requests, *million, *parents, *file, *only, *profile, *points)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// bench holds what the parts share.
type bench struct {
	folder, belfry, limit string

	profile string   // folder, or ""
	json    string   // file, or ""
	prefix  []string // a command in which servers run; none: they run as they are
	points  []any    // of the parts scale and growth
}

// serving is the beginning of configurations, up to their stores.
const serving = `
listen: 127.0.0.1:0
metrics: {token: the-metrics-of-load}
data: ./data
bus: {listen: ""}
log: {level: error}
stores:
`

const configuration = serving + `  Items: {expose: {}}
  Parents: {expose: {}}
  Loose: {expose: {}}
  Children:
    expose: {}
    map:
      Parents: {key: parent, target: children, fields: "title, year", cascade: true, maxBytes: 4MiB}
authentication:
  limits: {address: 0, account: 0}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

func run(ctx context.Context, rounds, requests, million, parents, file int, only, profile, points string) error {
	folder, err := os.MkdirTemp("", "belfry-load-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	b := &bench{folder: folder, profile: profile, json: points}
	if profile != "" {
		if err := os.MkdirAll(profile, 0o750); err != nil {
			return err
		}
	}
	if b.belfry, err = build(ctx, "..", folder, "belfry", "./cmd/belfry"); err != nil {
		return err
	}
	if b.limit, err = build(ctx, ".", folder, "limit", "./load/limit"); err != nil {
		return err
	}
	fmt.Printf("%s, %d processors, %d connections, 400-byte objects\n", runtime.Version(), runtime.NumCPU(),
		connections)
	for _, part := range []struct {
		name string
		run  func() error
	}{
		{"rates", func() error { return b.rates(ctx, rounds, requests) }},
		{"peers", func() error { return b.peers(ctx) }},
		{"containers", func() error { return b.containers(ctx) }},
		{"streams", func() error { return b.streams(ctx, rounds, requests) }},
		{"lag", func() error { return b.lag(ctx) }},
		{"parent", func() error { return b.oneParent(ctx) }},
		{"logins", func() error { return b.logins(ctx) }},
		{"memory", func() error { return b.memory(ctx, million) }},
		{"lists", func() error { return b.lists(ctx, rounds) }},
		{"query", func() error { return b.queryRates(ctx, million) }},
		{"hidden", func() error { return b.hiddenSearches(ctx) }},
		{"files", func() error { return b.files(ctx, rounds) }},
		{"s3", func() error { return b.s3(ctx, rounds, file) }},
		{"fills", func() error { return b.fills(ctx, rounds, requests/4) }},
		{"listener", func() error { return b.listeners(ctx, rounds, 2*requests) }},
		{"backends", func() error { return b.backends(ctx, requests) }},
		{"console", func() error { return b.consoleViews(ctx, million) }},
		{"grid", func() error { return grids(ctx, b, million) }},
		{"users", func() error { return foundUsers(ctx, b, million/10) }},
		{"costs", func() error { return b.costs(ctx) }},
		{"growth", func() error { return b.growth(ctx, million) }},
		{"arrays", func() error { return b.arrays(ctx, parents) }},
		{"copies", func() error { return b.copies(ctx, million) }},
		{"scale", func() error { return b.scales(ctx, requests, scaleDynamo) }},
		{"scale-mongodb", func() error { return b.scales(ctx, requests, scaleMongo) }},
	} {
		if only != "" && only != part.name {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// serve starts belfry on a data folder of its own.
func (b *bench) serve(ctx context.Context) (*server, error) {
	return b.serveWith(ctx, configuration)
}

func (b *bench) serveWith(ctx context.Context, configuration string) (*server, error) {
	home, err := os.MkdirTemp(b.folder, "serve-")
	if err != nil {
		return nil, err
	}
	return b.serveIn(ctx, home, configuration)
}

// serveIn starts belfry with its configuration and its data in a folder.
func (b *bench) serveIn(ctx context.Context, home, configuration string) (*server, error) {
	path := filepath.Join(home, "belfry.yaml")
	if err := os.WriteFile(path, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	program, args := b.within(b.belfry, "serve", "--config", path)
	s, err := start(ctx, "belfry", program, args...)
	if s != nil {
		s.data = filepath.Join(home, "data")
	}
	return s, err
}

// within is a command with the prefix.
func (b *bench) within(program string, args ...string) (string, []string) {
	all := append(append(slices.Clip(b.prefix), program), args...)
	return all[0], all[1:]
}

func (b *bench) serveLimit(ctx context.Context) (*server, error) {
	home, err := os.MkdirTemp(b.folder, "limit-")
	if err != nil {
		return nil, err
	}
	return start(ctx, "limit", b.limit, "127.0.0.1:0", home)
}

// verdict reports whether a figure reaches its goal.
func verdict(reached bool) string {
	if reached {
		return "reached"
	}
	return "MISSED"
}
