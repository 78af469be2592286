package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// Sizes and counts of the transfers.
const (
	largeFile  = 100_000_000
	smallFile  = 4 << 10
	atOnce     = 16 // transfers
	someFiles  = 3  // large ones in a round
	manyFiles  = 4000
	fewRounds  = 5
	fileGoal   = 0.80
	memoryGoal = 32 << 20
)

const filesConfiguration = configuration + `
binaries:
  binary: {map: {Items: [files]}, maxSize: 200MB, grace: 1s}
`

// files measures transfers: large ones one at a time and concurrently, and small ones.
func (b *bench) files(ctx context.Context, rounds int) (err error) {
	f := newFiles(largeFile)
	var servers [2]*server // limit, belfry
	for i, serve := range []func(context.Context) (*server, error){
		b.serveLimit, func(ctx context.Context) (*server, error) { return b.serveWith(ctx, filesConfiguration) },
	} {
		s, err := serve(ctx)
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
		for _, one := range []func(c *client, i int) error{
			create("/items", "large"), f.put(s, largeFile, f.large(s)), f.get(s, largeFile, f.large(s)),
		} {
			if _, err := closedLoop(s.base, 1, atOnce, one); err != nil {
				return err
			}
		}
	}
	err = b.profiled(ctx, servers[1], "files", profileSeconds,
		func() error { return f.largeOnes(servers, min(rounds, fewRounds)) })
	if err == nil {
		err = f.atOnce(servers[1])
	}
	if err == nil {
		err = f.smallOnes(servers, min(rounds, fewRounds))
	}
	return err
}

// files generates distinct contents.
type files struct {
	count   atomic.Uint64
	content []byte
}

func newFiles(size int) *files {
	f := &files{content: make([]byte, size)}
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(f.content)
	return f
}

// large returns the path of large file number i.
func (f *files) large(s *server) func(i int) string { return f.at(s, "large") }

func (f *files) at(s *server, run string) func(i int) string {
	return func(i int) string {
		if s.name == "limit" {
			return fmt.Sprintf("/%s-%08d", run, i)
		}
		return fmt.Sprintf("/Items/%s-%08d/files/0", run, i)
	}
}

func (f *files) put(s *server, size int, at func(i int) string) func(c *client, i int) error {
	prefix := "/binary/upload"
	if s.name == "limit" {
		prefix = "/files"
	}
	return func(c *client, i int) error {
		head := binary.BigEndian.AppendUint64(nil, f.count.Add(1))
		status, err := c.upload(prefix+at(i), head, f.content[len(head):size])
		if err == nil && status != 200 && status != 201 {
			err = fmt.Errorf("PUT %s: status %d: %s", at(i), status, c.body)
		}
		return err
	}
}

func (f *files) get(s *server, size int, at func(i int) string) func(c *client, i int) error {
	prefix := "/binary"
	if s.name == "limit" {
		prefix = "/files"
	}
	return func(c *client, i int) error {
		status, length, err := c.download(prefix + at(i))
		if err == nil && (status != 200 || length != size) {
			err = fmt.Errorf("GET %s: status %d, %d bytes", at(i), status, length)
		}
		return err
	}
}

func (f *files) largeOnes(servers [2]*server, rounds int) error {
	puts := &comparison{name: "upload of 100 MB", goal: fileGoal, size: largeFile / 1e6}
	gets := &comparison{name: "download of 100 MB", goal: fileGoal, size: largeFile / 1e6}
	for range rounds {
		if err := puts.measure(servers, func(s *server) (result, error) {
			return closedLoop(s.base, 1, someFiles, f.put(s, largeFile, f.large(s)))
		}); err != nil {
			return err
		}
		if err := gets.measure(servers, func(s *server) (result, error) {
			return closedLoop(s.base, 1, someFiles, f.get(s, largeFile, f.large(s)))
		}); err != nil {
			return err
		}
	}
	puts.print()
	gets.print()
	return nil
}

// atOnce measures how far the memory of belfry grows with concurrent large
// transfers.
func (f *files) atOnce(s *server) error {
	for _, part := range []struct {
		name string
		one  func(c *client, i int) error
	}{
		{"uploads", f.put(s, largeFile, f.large(s))},
		{"downloads", f.get(s, largeFile, f.large(s))},
	} {
		before := s.resident()
		if err := s.resetPeak(); err != nil {
			return err
		}
		r, err := closedLoop(s.base, atOnce, atOnce, part.one)
		if err != nil {
			return err
		}
		grown := s.status("VmHWM") - before
		fmt.Printf("%d %s of 100 MB at once: %.0f MB/s, resident memory grew by %d MB from %d MB (goal %d): %s\n",
			atOnce, part.name, largeFile/1e6*r.rate(), grown>>20, before>>20, memoryGoal>>20,
			verdict(grown <= memoryGoal))
	}
	return nil
}

func (f *files) smallOnes(servers [2]*server, rounds int) error {
	puts := &comparison{name: "upload of 4 KB"}
	gets := &comparison{name: "download of 4 KB"}
	for round := range rounds {
		run := fmt.Sprintf("small%d", round)
		for _, s := range servers {
			if _, err := closedLoop(s.base, connections, manyFiles, create("/items", run)); err != nil {
				return err
			}
		}
		if err := puts.measure(servers, func(s *server) (result, error) {
			return closedLoop(s.base, connections, manyFiles, f.put(s, smallFile, f.at(s, run)))
		}); err != nil {
			return err
		}
		if err := gets.measure(servers, func(s *server) (result, error) {
			return closedLoop(s.base, connections, manyFiles, f.get(s, smallFile, f.at(s, run)))
		}); err != nil {
			return err
		}
	}
	puts.print()
	gets.print()
	return nil
}
