package client

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"belfry/test/chaos/history"
)

// Accounts are the registrations of a run: each address is registered by two clients at once, with
// different passwords.
type Accounts struct {
	mu    sync.Mutex
	tries map[string][]string // passwords by address
	acked map[string]string   // the one that was acknowledged
}

// NewAccounts returns none.
func NewAccounts() *Accounts {
	return &Accounts{tries: map[string][]string{}, acked: map[string]string{}}
}

// registrations is how many addresses are registered between two checks: few, since each registration and
// each login computes the hash of a password.
const registrations = 2

// run registers at random times until done is closed.
func (a *Accounts) run(ctx context.Context, p *Pool, seed uint64, done <-chan struct{}) {
	random := rand.New(rand.NewPCG(seed, 1<<32))
	fronts := p.Deployment.Fronts
	for n := range registrations {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.IntN(1000)) * time.Millisecond):
		}
		address := fmt.Sprintf("%s-%d-%d@example.com", p.Tag, seed, n)
		first := random.IntN(len(fronts))
		var both sync.WaitGroup
		for i := range 2 {
			front := fronts[(first+i)%len(fronts)]
			both.Go(func() { a.register(ctx, p, front, address, fmt.Sprintf("the password of client %d", i)) })
		}
		both.Wait()
	}
}

func (a *Accounts) register(ctx context.Context, p *Pool, front, address, password string) {
	a.mu.Lock()
	a.tries[address] = append(a.tries[address], password)
	a.mu.Unlock()
	r, err := p.post(ctx, p.http.send, front,
		map[string]any{"register": true, "login": address, "password": password, "address": address})
	if err != nil || r.status >= http.StatusInternalServerError {
		if err == nil && r.status != http.StatusServiceUnavailable {
			p.History.Wrong(fmt.Sprintf("registering %s: status %d %s", address, r.status, r.body))
		}
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case r.status == http.StatusNoContent && a.acked[address] != "":
		p.History.Wrong(address + " was registered twice")
	case r.status == http.StatusNoContent:
		a.acked[address] = password
	case r.status != http.StatusConflict:
		p.History.Wrong(fmt.Sprintf("registering %s: status %d %s", address, r.status, r.body))
	}
}

func (p *Pool) post(ctx context.Context, send sender, front string, form map[string]any) (*reply, error) {
	data, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	return send(ctx, http.MethodPost, front+"/auth/email", http.Header{"Content-Type": {"application/json"}}, data)
}

// Settle logs in to every address that was registered since the last call. An address whose registration
// was not answered has a user with one of its passwords, or can be registered again.
func (a *Accounts) Settle(ctx context.Context, p *Pool) ([]history.Account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []history.Account
	for address, tries := range a.tries {
		account := history.Account{Address: address, Acknowledged: a.acked[address] != ""}
		if account.Acknowledged {
			tries = []string{a.acked[address]}
		}
		for _, password := range tries {
			user, err := p.login(ctx, address, password)
			if err != nil {
				return nil, err
			}
			if user != "" {
				account.User = user
			}
		}
		if account.User == "" && !account.Acknowledged {
			user, err := p.registerAgain(ctx, address)
			if err != nil {
				return nil, err
			}
			account.Acknowledged, account.User = true, user
		}
		all = append(all, account)
	}
	clear(a.tries)
	clear(a.acked)
	return all, nil
}

// registerAgain registers an address whose registration had no effect, or was interrupted between its two
// writes.
func (p *Pool) registerAgain(ctx context.Context, address string) (user string, err error) {
	const password = "the password of the last client"
	r, err := p.post(ctx, p.http.insist, p.Deployment.Fronts[0],
		map[string]any{"register": true, "login": address, "password": password, "address": address})
	if err != nil {
		return "", err
	}
	if r.status != http.StatusNoContent {
		p.History.Wrong(fmt.Sprintf("%s has no user and can't be registered: status %d %s", address, r.status, r.body))
		return "", nil
	}
	return p.login(ctx, address, password)
}

// login returns the uuid of the user that logs in, "" when that is refused.
func (p *Pool) login(ctx context.Context, address, password string) (string, error) {
	front := p.Deployment.Fronts[0]
	r, err := p.post(ctx, p.http.insist, front, map[string]any{"login": address, "password": password})
	if err != nil {
		return "", err
	}
	if r.status == http.StatusForbidden || r.status == http.StatusNotFound {
		return "", nil
	}
	token := ""
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		token = c.Value
	}
	if r.status != http.StatusNoContent || token == "" {
		return "", fmt.Errorf("logging in as %s: status %d %s", address, r.status, r.body)
	}
	r, err = p.http.insist(ctx, http.MethodGet, front+"/auth/me", http.Header{"Authorization": {"Bearer " + token}},
		nil)
	if err != nil || r.status != http.StatusOK {
		return "", fmt.Errorf("reading the user of %s: %w", address, statusError(r, err))
	}
	var me struct{ UUID, Address string }
	if err := json.Unmarshal(r.body, &me); err != nil {
		return "", err
	}
	if me.Address != address {
		p.History.Wrong(fmt.Sprintf("the user of %s is %s", address, r.body))
	}
	return me.UUID, nil
}

// Users returns the run's users, from the list of all.
func (p *Pool) Users(ctx context.Context) ([]history.User, error) {
	var users []history.User
	err := p.list(ctx, "/users", func(body []byte) error {
		var u history.User
		err := json.Unmarshal(body, &u)
		if err == nil && strings.HasPrefix(u.Address, p.Tag+"-") {
			users = append(users, u)
		}
		return err
	})
	return users, err
}

// statusError says which status a request had, when it had no error.
func statusError(r *reply, err error) error {
	if err == nil {
		err = fmt.Errorf("status %d: %s", r.status, history.Short(r.body))
	}
	return err
}
