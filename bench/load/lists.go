package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// The load of the lists.
const (
	listOthers = 100_000 // objects of others
	listOwn    = 60
	listPage   = 50
	listConns  = 8
	listCount  = 1000 // lists of a round

	listTeams = 3    // of the user
	allTeams  = 1000 // of others
)

// listing is a page of objects that a rule lets the user read, compared with a page of a store without a rule.
type listing struct {
	file  string  // name of its profile
	goal  float64 // 0: the ratio is printed
	name  string
	rule  string                             // what Items has besides the settings of the limit
	more  string                             // other stores, of both
	field func(isOwn bool, i int) string     // what an object has, that the rule needs
	join  func(c *client, uuid string) error // makes the user one who may read their objects; nil: they are
}

var byOwner = listing{
	file:  "list-owner",
	goal:  0.70,
	name:  fmt.Sprintf("list of %d of one's own objects among %d of others with policy: owner", listPage, listOthers),
	rule:  "policy: owner",
	field: func(bool, int) string { return "" },
}

var byTeam = listing{
	file: "list-team",
	name: fmt.Sprintf("list of %d of the objects of one's %d teams among %d of %d others, by a rule", listPage,
		listTeams, listOthers, allTeams),
	rule: `policy: {create: "true", get: "object.team in user.teams.map(t, t.team)"}`,
	more: "  Memberships: {expose: {}, map: {Users: {key: member, target: teams, fields: team}}}\n",
	field: func(isOwn bool, i int) string {
		if isOwn {
			return fmt.Sprintf(`"team":"own%d",`, i%listTeams)
		}
		return fmt.Sprintf(`"team":"t%d",`, i%allTeams)
	},
	join: func(c *client, uuid string) error {
		for i := range listTeams {
			if err := expect(c, 201, "POST", "/memberships",
				fmt.Appendf(nil, `{"member":%q,"team":"own%d"}`, uuid, i)); err != nil {
				return err
			}
		}
		return nil
	},
}

// lists measures pages of lists of which a rule decides. Both servers are belfry; every request is that of a user who
// is logged in.
func (b *bench) lists(ctx context.Context, rounds int) error {
	for _, l := range []listing{byOwner, byTeam} {
		if err := b.list(ctx, l, rounds); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) list(ctx context.Context, l listing, rounds int) (err error) {
	var servers [2]*server
	var headers [2]string
	for i, rule := range []string{"", ", " + l.rule} {
		s, err := b.serveWith(ctx, strings.Replace(configuration, "  Items: {expose: {}}\n",
			"  Items: {expose: {list: true}"+rule+"}\n"+l.more, 1))
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
		if headers[i], err = l.fill(ctx, s); err != nil {
			return err
		}
	}
	compared := &comparison{name: l.name + ", the limit is a list without a policy", goal: l.goal}
	err = b.profiled(ctx, servers[1], l.file, profileSeconds, func() error {
		for range rounds {
			if err := compared.measure(servers, func(s *server) (result, error) {
				header := headers[0]
				if s == servers[1] {
					header = headers[1]
				}
				return closedLoop(s.base, listConns, listCount, getPage(header))
			}); err != nil {
				return err
			}
		}
		return nil
	})
	compared.print()
	return err
}

// getPage returns a request of a user for the first page.
func getPage(header string) func(c *client, _ int) error {
	return func(c *client, _ int) error {
		c.header = header
		n, err := page(c)
		if err == nil && n != listPage {
			err = fmt.Errorf("a page has %d objects", n)
		}
		return err
	}
}

// page gets the first page, and returns how many objects it has: the first time, and listPage afterwards, so that
// reading the reply is not measured.
func page(c *client) (int, error) {
	if err := expect(c, 200, "GET", fmt.Sprintf("/items?limit=%d", listPage), nil); err != nil || c.checked {
		return listPage, err
	}
	var page struct{ Items []struct{ UUID string } }
	err := json.Unmarshal(c.body, &page)
	c.checked = err == nil && len(page.Items) == listPage
	return len(page.Items), err
}

// fill creates the objects, and returns the header of the user whose pages are measured.
func (l listing) fill(ctx context.Context, s *server) (own string, err error) {
	other, err := register(ctx, s, 0)
	if err != nil {
		return "", err
	}
	if own, err = register(ctx, s, 1); err != nil {
		return "", err
	}
	for header, count := range map[string]int{other: listOthers, own: listOwn} {
		if _, err := closedLoop(s.base, connections, count, func(c *client, i int) error {
			c.header = header
			return expect(c, 201, "POST", "/items",
				[]byte(strings.Replace(string(object("-", "")), `"uuid":"-",`, l.field(header == own, i), 1)))
		}); err != nil {
			return "", err
		}
	}
	if err := published(s, 0); err != nil || l.join == nil {
		return own, err
	}
	c, err := dial(s.base)
	if err != nil {
		return "", err
	}
	defer c.close()
	c.header = own
	var me struct{ UUID string }
	if err := errors.Join(expect(c, 200, "GET", "/auth/me", nil), json.Unmarshal(c.body, &me)); err != nil {
		return "", err
	}
	if err := l.join(c, me.UUID); err != nil {
		return "", err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if n, err := page(c); n == listPage || err != nil {
			return own, err
		}
	}
	return "", errors.New("the user is in no team after a minute")
}

// register registers a user and returns the header that says who is logged in.
func register(ctx context.Context, s *server, user int) (header string, err error) {
	return session(ctx, s, credentials(user)+`,"register":true}`)
}

// session logs in, and returns the header of requests with the session.
func session(ctx context.Context, s *server, body string) (header string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/auth/email", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	for _, cookie := range res.Cookies() {
		return "Authorization: Bearer " + cookie.Value + "\r\n", nil
	}
	return "", fmt.Errorf("POST /auth/email: %s, without a session", res.Status)
}
