package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// countedLimits has requests from this machine count, and refuses none of those that are measured: the rates are the
// largest that can be configured. Only lists are refused, by which limited knows that limits count.
const countedLimits = `
limits:
  loopback: true
  address: {reads: 1000000, writes: 1000000, lists: 1}
  user: {reads: 1000000, writes: 1000000, lists: 1}
`

// limitRates measures what limits cost: creates and gets of a user who is logged in, at a belfry whose limits count and
// at one that exempts this machine, in turn. Every request counts for its address and for its user.
func (b *bench) limitRates(ctx context.Context, rounds, requests int) (err error) {
	listed := strings.Replace(configuration, "Items: {expose: {}}", "Items: {expose: {list: true}}", 1)
	var servers [2]*server // exempt, limited
	headers := map[*server]string{}
	for i, settings := range []string{listed, listed + countedLimits} {
		s, err := b.serveWith(ctx, settings)
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
		if headers[s], err = register(ctx, s, 0); err != nil {
			return err
		}
		if err := limited(s, headers[s], i == 1); err != nil {
			return err
		}
		if _, err := loggedIn(s, headers[s], requests, create("/items", "warm")); err != nil {
			return err
		}
	}
	names := [2]string{"exempt", "limited"}
	creates := &comparison{name: "create by a user, its event published, with limits that count", names: names}
	gets := &comparison{name: "get by a user, with limits that count", names: names}
	for round := range rounds {
		run := fmt.Sprintf("r%d", round)
		if err := creates.measure(servers, func(s *server) (result, error) {
			return timed(func() (result, error) {
				r, err := loggedIn(s, headers[s], requests, create("/items", run))
				if err == nil {
					err = published(s, (round+2)*requests)
				}
				return r, err
			})
		}); err != nil {
			return err
		}
		if err := gets.measure(servers, func(s *server) (result, error) {
			return loggedIn(s, headers[s], requests, get(run, requests))
		}); err != nil {
			return err
		}
	}
	creates.print()
	gets.print()
	return nil
}

// loggedIn is closedLoop by the user whom a header names.
func loggedIn(s *server, header string, total int, one func(c *client, i int) error) (result, error) {
	return closedLoop(s.base, connections, total, func(c *client, i int) error {
		c.header = header
		return one(c, i)
	})
}

// limited returns an error unless limits count for a client exactly if they should.
func limited(s *server, header string, want bool) error {
	refused := false
	_, err := closedLoop(s.base, 1, 30, func(c *client, _ int) error {
		c.header = header
		status, err := c.do("GET", "/items?limit=1", nil)
		refused = refused || status == 429
		return err
	})
	if err == nil && refused != want {
		err = fmt.Errorf("limits count: %t, want %t", refused, want)
	}
	return err
}
