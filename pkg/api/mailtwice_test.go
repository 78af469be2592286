package api_test

import (
	"net/http"
	"sync"
	"testing"

	"belfry/pkg/account"
)

// A form that asks for a mail and is sent twice leads to where the first one did: the mail is on its way. Where the
// mail is for whoever has asked alone, other browsers have to wait.
func TestAFormThatAsksForAMailTwice(t *testing.T) {
	const limited = "limited"
	form := func(path string, fields ...string) oneUse {
		return func(_ *attackFixture, _ *browser) func(*browser) response {
			return func(b *browser) response { return b.form(path, fields...) }
		}
	}
	proven := func(p *attackFixture, b *browser) {
		b.registered().follow(p.deliverMails(adasAddress, "validate"))
	}
	// Codes of mails are added as a second factor, and their mailbox is made as if that was long ago.
	enrolled := func(p *attackFixture, b *browser) {
		proven(p, b)
		b.wantStatus(b.request("POST", "/auth/factors/email", ""), http.StatusAccepted)
		b.wantStatus(b.request("PUT", "/auth/factors/email", `{"code":"`+p.deliverMails(adasAddress, "code")+`"}`),
			http.StatusOK)
		for stored, err := range p.tokens.All(p.Context(), 100) {
			p.must(err)
			p.must(p.tokens.Delete(p.Context(), stored.UUID, 0))
		}
	}
	for name, c := range map[string]struct {
		first       bool // addresses are validated first
		ask         oneUse
		same, other string // where the form leads: the same browser, and another one; "" where it can't send it
	}{
		"of a registration": {
			first: true, ask: form("/auth/email", "register", "true", "login", adasAddress, "password", adasPassword),
			same: "/register?mail=sent", other: "/register?mail=sent",
		},
		"of a recovery": {
			ask:  form("/auth/email/recovery", "login", adasAddress),
			same: "/again?mail=sent", other: "/again?mail=sent",
		},
		"of a login": {
			ask:  form("/auth/email/code", "login", adasAddress),
			same: "/code?mail=sent", other: "/out?reason=" + limited,
		},
		"of a login by a link": {
			ask:  form("/auth/email/code", "login", adasAddress, "kind", "link"),
			same: "/code?mail=sent", other: "/out?reason=" + limited,
		},
		"of a change of address": {
			ask: func(p *attackFixture, b *browser) func(*browser) response {
				proven(p, b)
				return func(b *browser) response {
					return b.form("/auth/idents/"+adasAddress+"_email/address", "address", "new@example.com",
						"password", adasPassword)
				}
			},
			same: "/account?outcome=address-mailed",
		},
		"of codes as a second factor": {
			ask: func(p *attackFixture, b *browser) func(*browser) response {
				proven(p, b)
				return func(b *browser) response { return b.form("/auth/factors/email") }
			},
			same: "/account?setup=email",
		},
		"of a second factor": {
			ask: func(p *attackFixture, b *browser) func(*browser) response {
				enrolled(p, p.newBrowser())
				b.form("/auth/email", "login", adasAddress, "password", adasPassword)
				return func(b *browser) response { return b.form("/auth/second-factor/code", "factors", "email") }
			},
			same: "/second?factors=email&mail=sent",
		},
		"of a step of the session": {
			ask: func(p *attackFixture, b *browser) func(*browser) response {
				enrolled(p, b)
				return func(b *browser) response { return b.form("/auth/second-factor/code") }
			},
			same: "/account?mail=sent&reason=step-up",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newAttackFixture(t, everyWayIn, allPages, withMailInterval,
				func(o *account.Options) { o.Email.PostValidation = !c.first })
			own := p.newBrowser()
			ask := c.ask(p, own)
			for i := range 3 {
				r := ask(own)
				if !isPlace(r.Header.Get("Location"), c.same) || i > 0 && r.setsCookie() {
					t.Fatalf("form %d: %d %s %v, want %s", i+1, r.StatusCode, r.Header.Get("Location"), r.Cookies(),
						c.same)
				}
			}
			if c.other == "" {
				return
			}
			if r := ask(p.newBrowser()); !isPlace(r.Header.Get("Location"), c.other) || r.setsCookie() {
				t.Errorf("another browser: %d %s, want %s", r.StatusCode, r.Header.Get("Location"), c.other)
			}
		})
	}
}

// Of two requests at once the second one may find the mail before the change.
func TestAChangeOfAddressThatIsSentTwiceAtOnce(t *testing.T) {
	replies := make([]response, 4)
	// A password counts as wrong until it is verified, and all are verified at once.
	withGuesses := func(o *account.Options) { o.Limits.Account = len(replies) }
	p := newAttackFixture(t, everyWayIn, allPages, withMailInterval, withGuesses)
	b := p.newBrowser().registered()
	b.follow(p.deliverMails(adasAddress, "validate"))
	var all sync.WaitGroup
	for i := range replies {
		all.Go(func() {
			replies[i] = b.form("/auth/idents/"+adasAddress+"_email/address", "address", "new@example.com", "password",
				adasPassword)
		})
	}
	all.Wait()
	for _, r := range replies {
		if !isPlace(r.Header.Get("Location"), "/account?outcome=address-mailed") {
			t.Errorf("%d %s", r.StatusCode, r.Header.Get("Location"))
		}
	}
}

// A mail that another login of the same user has asked for is not for this one, nor is that of another change.
func TestAMailThatIsForOthersIsLimited(t *testing.T) {
	p := newAttackFixture(t, everyWayIn, allPages, withMailInterval)
	b := p.newBrowser().registered()
	b.follow(p.deliverMails(adasAddress, "validate"))
	change := func(to string) string {
		r := b.form("/auth/idents/"+adasAddress+"_email/address", "address", to, "password", adasPassword)
		return r.Header.Get("Location")
	}
	if to := change("new@example.com"); !isPlace(to, "/account?outcome=address-mailed") {
		t.Fatal(to)
	}
	if to := change("other@example.com"); !isPlace(to, "/account?form=address&reason=limited") {
		t.Errorf("another change: %s", to)
	}
	codes, link := p.newBrowser(), `{"login":"`+adasAddress+`","kind":"link"}`
	codes.wantStatus(codes.request("POST", "/auth/email/code", asked), http.StatusAccepted)
	codes.wantStatus(codes.request("POST", "/auth/email/code", asked), http.StatusTooManyRequests) // a program
	codes.wantStatus(codes.request("POST", "/auth/email/code", link), http.StatusTooManyRequests)
	if to := codes.form("/auth/email/code", "login", adasAddress, "kind", "link").Header.Get("Location"); !isPlace(to,
		"/out?reason=limited") {
		t.Errorf("a link in place of a code: %s", to)
	}
}
