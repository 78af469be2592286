package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// streams compares creates by single requests with the same by streams of lines, each at a belfry of its own, in turn:
// by one client, who sends the next request when the one before has its reply, and by as many as elsewhere.
func (b *bench) streams(ctx context.Context, rounds, requests int) (err error) {
	var servers [2]*server // single requests, streams
	for i := range servers {
		if servers[i], err = b.serve(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, servers[i].stop()) }()
		if _, err := closedLoop(servers[i].base, connections, requests, create("/items", "warm")); err != nil {
			return err
		}
	}
	made := [2]int{requests, requests}
	for _, c := range []struct {
		name            string
		clients, creats int
		goal            float64
	}{
		{"creates by one client, their events published: a stream beside single requests", 1, requests / 4, 2},
		{fmt.Sprintf("creates by %d clients, their events published: 8 streams beside single requests", connections),
			connections, requests, 0},
	} {
		compared := &comparison{name: c.name, names: [2]string{"single", "streams"}, goal: c.goal}
		for round := range rounds {
			run := fmt.Sprintf("s%d-%d", c.clients, round)
			if err := compared.measure(servers, func(s *server) (result, error) {
				return timed(func() (r result, err error) {
					which := slices.Index(servers[:], s)
					if which == 0 {
						r, err = closedLoop(s.base, c.clients, c.creats, create("/items", run))
					} else {
						r, err = streamed(ctx, s.base, min(c.clients, 8), c.creats, run)
					}
					if made[which] += c.creats; err == nil {
						err = published(s, made[which])
					}
					return r, err
				})
			}); err != nil {
				return err
			}
		}
		compared.print()
	}
	return nil
}

// streamed creates objects by streams.
func streamed(ctx context.Context, base string, streams, total int, run string) (result, error) {
	var group sync.WaitGroup
	failed := make([]error, streams)
	began := time.Now()
	for n := range streams {
		group.Go(func() { failed[n] = oneStream(ctx, base, n, streams, total, run) })
	}
	group.Wait()
	return result{requests: total, took: time.Since(began),
		latencies: []time.Duration{time.Since(began)}}, errors.Join(failed...)
}

// oneStream creates every so many objects by a stream, and reads the replies while it sends.
func oneStream(ctx context.Context, base string, first, step, total int, run string) error {
	total = (total - first + step - 1) / step
	lines := linesOf(0, total, func(i int) []byte { return object(fmt.Sprintf("%s-%08d", run, first+i*step), "") })
	return createLines(ctx, base+"/items", lines, total)
}

// linesOf returns the lines of some numbers.
func linesOf(from, to int, line func(i int) []byte) io.Reader {
	read, write := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(write, 64<<10)
		var err error
		for i := from; i < to && err == nil; i++ {
			if _, err = out.Write(line(i)); err == nil {
				err = out.WriteByte('\n')
			}
		}
		_ = write.CloseWithError(errors.Join(err, out.Flush()))
	}()
	return read
}

// createLines creates the object of each line, and returns an error if it has not made as many as expected.
func createLines(ctx context.Context, url string, lines io.Reader, total int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, lines)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	replies, created := bufio.NewScanner(resp.Body), 0
	for replies.Scan() {
		if !bytes.Contains(replies.Bytes(), []byte(`"status":201`)) {
			return fmt.Errorf("POST %s, a stream: %w: %s", url, errStatus, replies.Text())
		}
		created++
	}
	if created != total {
		return errors.Join(replies.Err(), fmt.Errorf("POST %s, a stream: %d lines were created, want %d, %s", url,
			created, total, strings.TrimSpace(resp.Status)))
	}
	return replies.Err()
}
