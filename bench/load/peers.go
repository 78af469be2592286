package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The load of the peers.
const (
	peerRounds = 3
	peerTurn   = 4 * time.Second
	peerIdle   = 90 * time.Second // before the memory of an idle process is read

	peerMost = 1 << 20 // requests of a turn, so that no turn's ids end
)

const peerStores = serving + `  Items:
    expose: {list: true}
    indexes: ["author, year", year]
`

// peer is a server of the comparison, and the paths of what it is asked for.
type peer struct {
	*server
	items string // of objects, "" where it has none
	list  string // of an author's, "" where it has no lists
}

// act is what the peers are asked for.
type act struct {
	name string
	can  func(p *peer) bool
	one  func(p *peer, run string) func(c *client, i int) error
	// complete waits until what was asked for is done, of belfry the publication of its events.
	complete func(p *peer, requests int) error
}

const peerAuthors = 1_000

// peerID is the id of an object of a turn: PocketBase wants 15 characters.
func peerID(run string, i int) string { return fmt.Sprintf("%s%013d", run, i) }

// peerObject has 400 bytes.
func peerObject(p *peer, run string, i int) []byte {
	id := "uuid"
	if p.name == peerPocketBase {
		id = "id"
	}
	return object("", fmt.Sprintf(`%q:%q,"author":%q,`, id, peerID(run, i), author(i%peerAuthors)))
}

const peerPocketBase = "PocketBase"

// create creates an object of a turn.
func (p *peer) create(run string) func(c *client, i int) error {
	return func(c *client, i int) error {
		status, err := c.do("POST", p.items, peerObject(p, run, i))
		if err == nil && status != 200 && status != 201 {
			err = fmt.Errorf("POST %s: %w: %d: %s", p.items, errStatus, status, c.body)
		}
		return err
	}
}

// listSome lists objects of an author.
func (p *peer) listSome(c *client) error {
	query := queries[0].belfry
	if p.name == peerPocketBase {
		query = queries[0].other
	}
	return expect(c, 200, "GET", p.list+query(peerAuthors), nil)
}

// servePeer starts belfry or PocketBase, without objects.
func servePeer(ctx context.Context, b *bench, name string) (p *peer, err error) {
	if name == peerPocketBase {
		p = &peer{items: strings.TrimSuffix(ofPocketBase, "?"), list: ofPocketBase}
		p.server, err = b.servePocketBase(ctx, 0)
	} else {
		p = &peer{items: "/items", list: "/items?"}
		p.server, err = b.serveWith(ctx, peerStores)
	}
	return p, err
}

// peers measures belfry beside PocketBase, beside a program that has only what belfry is built on, and beside echo
// itself, in turn, and the memory of each.
func (b *bench) peers(ctx context.Context) (err error) {
	pocketBase, err := servePeer(ctx, b, peerPocketBase)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pocketBase.stop()) }()
	limit, err := b.serveLimit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limit.stop()) }()
	hello, err := b.serveLimit(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hello.stop()) }()
	belfry, err := servePeer(ctx, b, "belfry")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, belfry.stop()) }()
	all := []*peer{
		{server: hello},
		{server: limit, items: "/items"},
		pocketBase, belfry,
	}
	hello.name, limit.name = "echo", "bare"
	fmt.Printf("belfry was ready %s after its start, PocketBase %s\n", short(belfry.ready), short(pocketBase.ready))
	time.Sleep(peerIdle)
	memories(all, "idle")
	if err := b.comparePeers(all); err != nil {
		return err
	}
	memories(all, "after the requests")
	time.Sleep(peerIdle)
	memories(all, fmt.Sprintf("%.0f s later", peerIdle.Seconds()))
	return nil
}

// memories prints the memory of each server.
func memories(all []*peer, when string) {
	fmt.Printf("resident %s:\n", when)
	for _, p := range all {
		fmt.Printf("  %-10s %4d MB, %d of them of the program and of files; at most %d\n", p.name, p.resident()>>20,
			(p.status("RssFile")+p.status("RssShmem"))>>20, p.status("VmHWM")>>20)
	}
}

func (b *bench) comparePeers(all []*peer) error {
	created := map[*peer]struct {
		run   string
		count int
	}{}
	hasItems := func(p *peer) bool { return p.items != "" }
	published := func(p *peer, requests int) error {
		if p.name != "belfry" {
			return nil
		}
		return published(p.server, requests)
	}
	total := 0
	acts := []act{
		{"create, its event published", hasItems, (*peer).create, published},
		{"get", func(*peer) bool { return true }, func(p *peer, _ string) func(c *client, i int) error {
			if p.items == "" {
				return func(c *client, _ int) error { return expect(c, 200, "GET", "/hello", nil) }
			}
			return func(c *client, _ int) error {
				of := created[p]
				return expect(c, 200, "GET", p.items+"/"+peerID(of.run, rand.IntN(of.count)), nil)
			}
		}, nil},
		{"list of 30 by an index", func(p *peer) bool { return p.list != "" },
			func(p *peer, _ string) func(c *client, i int) error {
				return func(c *client, _ int) error { return p.listSome(c) }
			}, nil},
	}
	results := make([]map[*peer]*turns, len(acts))
	for i := range results {
		results[i] = map[*peer]*turns{}
		for _, p := range all {
			results[i][p] = &turns{}
		}
	}
	for round := range peerRounds {
		run := fmt.Sprintf("r%d", round)
		for i, a := range acts {
			for _, p := range all {
				if !a.can(p) {
					continue
				}
				t, err := takeTurn(p.server, func(s *server) (result, error) {
					return timed(func() (result, error) {
						r, err := loopsFor(peerTurn, s.base, connections, peerMost, a.one(p, run))
						if err == nil && a.complete != nil {
							if p.name == "belfry" {
								total += r.requests
							}
							err = a.complete(p, total)
						}
						return r, err
					})
				})
				if err != nil {
					return err
				}
				if i == 0 {
					created[p] = struct {
						run   string
						count int
					}{run, t.requests}
				}
				results[i][p].add(t)
			}
		}
	}
	for i, a := range acts {
		fmt.Printf("%s:\n", a.name)
		belfry := median(results[i][all[len(all)-1]].rates)
		for _, p := range all {
			of := results[i][p]
			if len(of.rates) == 0 {
				continue
			}
			fmt.Printf("  %-10s %s", p.name, of.line("/s", 1))
			if p.name != "belfry" {
				fmt.Printf("; belfry %.2f times", belfry/median(of.rates))
			}
			fmt.Println()
		}
	}
	return nil
}
