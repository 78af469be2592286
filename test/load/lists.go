package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// The load of the lists.
const (
	listOthers = 100_000 // objects of another user
	listOwn    = 60
	listPage   = 50
	listConns  = 8
	listCount  = 1000 // lists of a round
	listGoal   = 0.70
)

// lists measures a page of one's own objects among those of others, compared with the same page of a store
// without a policy. Both are belfry; every request is that of a user who is logged in.
func (b *bench) lists(ctx context.Context, rounds int) (err error) {
	open := strings.Replace(configuration, "Items: {expose: {}}", "Items: {expose: {list: true}}", 1)
	owned := strings.Replace(configuration, "Items: {expose: {}}", "Items: {expose: {list: true}, policy: owner}", 1)
	var servers [2]*server
	var headers [2]string
	for i, settings := range []string{open, owned} {
		s, err := b.serveWith(ctx, settings)
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
		other, err := register(ctx, s, 0)
		if err != nil {
			return err
		}
		if headers[i], err = register(ctx, s, 1); err != nil {
			return err
		}
		for header, count := range map[string]int{other: listOthers, headers[i]: listOwn} {
			if _, err := closedLoop(s.base, connections, count, func(c *client, _ int) error {
				c.header = header
				return expect(c, 201, "POST", "/items", []byte(strings.Replace(string(object("-", "")), `"uuid":"-",`, "", 1)))
			}); err != nil {
				return err
			}
		}
		if err := published(s, 0); err != nil {
			return err
		}
	}
	compared := &comparison{
		name: fmt.Sprintf("list of %d of one's own objects among %d of others with policy: owner, the limit is a list without a policy", listPage, listOthers), goal: listGoal,
	}
	for range rounds {
		if err := compared.measure(servers, func(s *server) (result, error) {
			header := headers[0]
			if s == servers[1] {
				header = headers[1]
			}
			return closedLoop(s.base, listConns, listCount, func(c *client, _ int) error {
				c.header = header
				if err := expect(c, 200, "GET", fmt.Sprintf("/items?limit=%d", listPage), nil); err != nil {
					return err
				}
				var page struct{ Items []struct{ UUID string } }
				if c.checked {
					return nil
				}
				c.checked = true
				if err := json.Unmarshal(c.body, &page); err != nil || len(page.Items) != listPage {
					return fmt.Errorf("a page has %d objects: %w", len(page.Items), err)
				}
				return nil
			})
		}); err != nil {
			return err
		}
	}
	compared.print()
	return nil
}

// register registers a user and returns the header that says who is logged in.
func register(ctx context.Context, s *server, user int) (header string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/auth/email", strings.NewReader(credentials(user)+`,"register":true}`))
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
