package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// userConfiguration has a user store with columns of its own.
const userConfiguration = serving + `  Users: {indexes: [city]}
authentication:
  limits: {address: 0, account: 0}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

const (
	userDomains = 50
	userCities  = 500
)

// foundUsers measures how admins find users, among a tenth as many as the objects of other parts.
func foundUsers(ctx context.Context, b *bench, total int) (err error) {
	if total == 0 {
		return nil
	}
	home, err := os.MkdirTemp(b.folder, "users-")
	if err != nil {
		return err
	}
	s, err := b.serveIn(ctx, home, userConfiguration)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	admin, err := register(ctx, s, 0)
	if err != nil {
		return err
	}
	if err := b.command(ctx, s, "user", "admin", "user0@example.com"); err != nil {
		return err
	}
	g := &grid{server: s, total: total}
	if err := fillUsers(g, admin); err != nil {
		return err
	}
	if g.client, err = dial(s.base); err != nil {
		return err
	}
	defer g.client.close()
	g.client.header = admin
	return b.profiled(ctx, s, "users", profileSeconds, func() error { return g.measureEach(g.users()) })
}

// person returns the name of a user; there are few first names, and many last ones.
func person(i int) (first, last string) {
	return word(uint64(i) % 997), word(uint64(i)*7919%4096) + word(uint64(i)/997%16) //nolint:gosec // a number of a user
}

func fillUsers(g *grid, admin string) error {
	began := time.Now()
	if _, err := closedLoop(g.base, connections, g.total, func(c *client, i int) error {
		c.header = admin + formMedia
		first, last := person(i)
		form := url.Values{"name": {first + " " + last}, "validated": {"true"},
			"login": {fmt.Sprintf("%s.%s%d@company%d.example.com", first, last, i, i%userDomains)}}
		return expect(c, 303, "POST", "/console/users", []byte(form.Encode()))
	}); err != nil {
		return err
	}
	if err := mapped(g.server); err != nil {
		return err
	}
	fmt.Printf("users: %d, created in %s (%.0f/s), resident %d MB\n", g.total, short(time.Since(began)),
		float64(g.total)/time.Since(began).Seconds(), g.resident()>>20)
	return nil
}

// users are the ways to find users.
func (g *grid) users() []measuredView {
	const list = "/console/users"
	first, last := person(g.total / 2)
	find := func(q string) string { return list + "?" + values("q", q) }
	return []measuredView{
		opened("users", list, 200),
		opened("users, the second page", link(g.client, list, "after="), 200),
		opened("a whole address", find(fmt.Sprintf("%s.%s%d@company%d.example.com", first, last, g.total/2,
			g.total/2%userDomains)), 303),
		opened("a first and a last name", find(first+" "+last), 200),
		opened("a part of a last name", find(last[1:6]), 200),
		opened("a part of an address", find(last[2:]+fmt.Sprint(g.total/2)+"@"), 200),
		opened("a first name and a domain", find(first+" @company7."), 200),
		opened("a domain", find("company7."), 200),
		opened("a domain, the second page", link(g.client, find("company7."), "after="), 200),
		opened("what all have", find("example"), 200),
		opened("two letters", find(strings.ToUpper(last[:2])), 200),
		opened("a word that nobody has, of parts that many have", find("lecompany"), 200),
		opened("words that no user has together", find("company7 company8"), 200),
		opened("nobody", find("xqxqxq"), 200),
		opened("API keys", list+"/keys", 200),
	}
}
