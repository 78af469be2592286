package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// The load of the logins.
const (
	loginUsers  = 16
	loginRounds = 11
	loginCount  = 150 // of a round
	loginConns  = 8   // more than there are cores, so that no core waits

	storm        = 500 // logins at once
	stormGets    = 4   // connections that read during the storm
	baselineGets = 4000
	stormGetsMax = 20_000 // at most, in a storm
)

func credentials(user int) string {
	return fmt.Sprintf(`{"login":"user%d@example.com","password":"correct horse %d"`, user, user)
}

func login(c *client, i int) error {
	return expect(c, 204, "POST", "/auth/email", []byte(credentials(i%loginUsers)+"}"))
}

// logins measures logins compared with their password hashes alone, and the
// latency of other requests during a storm of logins.
func (b *bench) logins(ctx context.Context) (err error) {
	var servers [2]*server // limit, belfry
	for i, serve := range []func(context.Context) (*server, error){b.serveLimit, b.serve} {
		s, err := serve(ctx)
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
	}
	if _, err := closedLoop(servers[1].base, 1, loginUsers, func(c *client, i int) error {
		return expect(c, 204, "POST", "/auth/email", []byte(credentials(i)+`,"register":true}`))
	}); err != nil {
		return err
	}
	one := func(s *server) func(c *client, i int) error {
		if s.name == "limit" {
			return func(c *client, _ int) error { return expect(c, 204, "POST", "/hash", []byte("correct horse")) }
		}
		return login
	}
	logins := &comparison{name: "login, the limit computes the hash alone", goal: 0.90}
	err = b.profiled(ctx, servers[1], "logins", profileSeconds, func() error {
		for range loginRounds {
			if err := logins.measure(servers, func(s *server) (result, error) {
				return closedLoop(s.base, loginConns, loginCount, one(s))
			}); err != nil {
				return err
			}
		}
		return nil
	})
	logins.print()
	if err != nil {
		return err
	}
	return b.storm(servers[1])
}

// storm runs many concurrent logins while other clients read.
func (b *bench) storm(s *server) error {
	if _, err := closedLoop(s.base, connections, 1000, create("/items", "s")); err != nil {
		return err
	}
	baseline, err := closedLoop(s.base, stormGets, baselineGets, get("s", 1000))
	if err != nil {
		return err
	}
	before := s.resident()
	over := make(chan struct{})
	var stormed, read result
	var refused atomic.Int64
	var g errgroup.Group
	g.Go(func() (err error) {
		defer close(over)
		stormed, err = closedLoop(s.base, storm, storm, func(c *client, i int) error {
			err := login(c, i)
			if errors.Is(err, errStatus) && bytes.Contains(c.body, []byte(`"status":429`)) {
				refused.Add(1) // waited too long for a core
				return nil
			}
			return err
		})
		return err
	})
	g.Go(func() (err error) {
		reading := get("s", 1000)
		read, err = closedLoop(s.base, stormGets, stormGetsMax, func(c *client, i int) error {
			select {
			case <-over:
				return errOver
			default:
				return reading(c, i)
			}
		})
		if errors.Is(err, errOver) {
			err = nil
		}
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d logins at once: answered after %s, %d of them rejected with 429; %d gets meanwhile p50 %s, p99 %s "+
		"(without logins %s, %s); resident %d MB more at most\n",
		storm, short(stormed.took), refused.Load(), len(read.latencies), short(read.percentile(0.5)),
		short(read.percentile(0.99)),
		short(baseline.percentile(0.5)), short(baseline.percentile(0.99)), (s.status("VmHWM")-before)>>20)
	return nil
}

var errOver = errors.New("the storm is over")
