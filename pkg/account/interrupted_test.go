package account_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Wherever a registration is interrupted, its address is neither lost nor
// registered twice.
func TestAnInterruptedRegistrationCanBeRepeated(t *testing.T) {
	broken := errors.New("broken")
	for _, first := range []bool{false, true} {
		for moment := range 12 {
			t.Run(fmt.Sprint(first, moment), func(t *testing.T) {
				w := newFixture(t, func(o *account.Options) { o.Email.PostValidation = !first })
				c := credentials(ada, password)
				token := func() {
					if first {
						w.clock.advance(w.email.MailInterval)
						_, mailed, err := w.Registration.Register(t.Context(), credentials(ada, password), from)
						w.must(err)
						if m := w.lastMail(ada); mailed && m.kind == "validate" {
							c.Token = m.token
						}
					}
				}
				token()
				var steps atomic.Int32
				w.backend.onStep(func(_ context.Context, s step) error {
					if s.write != nil && int(steps.Add(1)) > moment {
						return broken // and nothing is written any more
					}
					return nil
				})
				in, _, err := w.Registration.Register(t.Context(), c, from)
				w.Close()
				w.backend.onStep(nil)
				if err == nil {
					w.mustLogin(ada, password, in.User.UUID)
					return
				}
				if !errors.Is(err, broken) {
					t.Fatal(err)
				}
				w.allowKinds(w.deliverMails())
				token()
				w.completeRegistration(c)
			})
		}
	}
}

// registerEvents counts the pending Register events of users.
func (w *fixture) registerEvents() (n int) {
	w.Helper()
	waiting, next, err := w.backend.open["Users"].Pending(w.Context(), nil, 1000)
	w.must(err)
	if next != nil {
		w.Fatal("too many events wait")
	}
	for _, e := range waiting {
		if strings.Contains(e.Subject, "."+string(event.Register)+".Users.") {
			n++
		}
	}
	return n
}

// completeRegistration registers an address after an interrupted registration,
// unless its user was created, and checks that there is one of everything.
func (w *fixture) completeRegistration(c passwords.Credentials) {
	w.Helper()
	c.Password = "the next password"
	_, _, err := w.Registration.Register(w.Context(), c, from)
	switch {
	case err == nil:
	case errors.Is(err, errs.Exists), errors.Is(err, errs.Denied):
		// The user was created, although the registration returned an error.
		c.Password = password
	default:
		w.Fatal(err)
	}
	users := w.objects("Users")
	if len(users) != 1 || len(w.objects("Idents")) != 1 || w.registerEvents() != 1 {
		w.Fatalf("%d users, %d idents, %d Register events", len(users), len(w.objects("Idents")), w.registerEvents())
	}
	w.mustLogin(c.Login, c.Password, users[0].UUID)
	_, err = w.Login.Login(w.Context(), credentials(c.Login, "a third password"), from)
	w.wantKind(err, errs.Denied)
}

func TestACanceledRegistrationCanBeRepeated(t *testing.T) {
	w := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.store == "Idents" && s.after {
			cancel()
		}
		return ctx.Err()
	})
	_, _, err := w.Registration.Register(ctx, credentials(ada, password), from)
	w.wantKind(err, errs.Canceled)
	w.backend.onStep(nil)
	if w.record("Idents", adaIdent) == nil || len(w.objects("Users")) != 0 {
		t.Fatal("it did not break off in between")
	}
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	if n := w.countMails(ada); n != 0 {
		t.Errorf("%d mails to an address that has no user", n)
	}
	w.completeRegistration(credentials(ada, password))
}

// interruptRegistration leaves an ident whose user was never created, and
// returns that user's uuid.
func (w *fixture) interruptRegistration(login string) string {
	w.Helper()
	broken := errors.New("broken")
	w.backend.onStep(failWrites("Users", broken))
	_, _, err := w.Registration.Register(w.Context(), credentials(login, password), from)
	w.backend.onStep(nil)
	if !errors.Is(err, broken) {
		w.Fatal(err)
	}
	idents, _, err := w.set.Store("Idents").Scan(w.Context(), nil, 1000)
	w.must(err)
	for _, i := range idents {
		if id, _ := object.Text(object.Field(i.Body, "_id")); id == login {
			user, _ := object.Text(object.Field(i.Body, "user"))
			return user
		}
	}
	w.Fatal("no ident was left")
	return ""
}

func TestConcurrentAdoptionsCreateOneUser(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 30 {
		login := fmt.Sprintf("ada%d@example.com", round)
		left := w.interruptRegistration(login)
		var won atomic.Pointer[sessions.Issued]
		concurrently(services, 4, func(i int, s *account.Service) {
			in, _, err := s.Registration.Register(t.Context(), credentials(login, fmt.Sprintf("the password of %d", i)),
				from)
			w.allowKinds(err, errs.Exists, errs.Conflict)
			if err == nil && !won.CompareAndSwap(nil, &in) {
				t.Error("two have adopted it")
			}
		})
		if in := won.Load(); in == nil || in.User.UUID != left || len(w.idents(left)) != 1 {
			t.Fatalf("adopted by %v, left for %s", in, left)
		}
	}
	if n := w.registerEvents(); n != 30 {
		t.Errorf("%d Register events", n)
	}
}

// A registration that seemed interrupted may be slow.
func TestASlowRegistrationCanBeAdopted(t *testing.T) {
	w := newFixture(t)
	other, _ := w.newService()
	reached, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	w.backend.onStep(onceAt(func(s step) bool { return s.store == "Users" && s.write != nil && !s.after }, func() {
		close(reached)
		<-goOn
	}))
	go func() {
		_, _, err := other.Registration.Register(t.Context(), credentials(ada, "the slow password"), from)
		done <- err
	}()
	<-reached
	in := w.register(ada, password)
	close(goOn)
	w.wantKind(<-done, errs.Exists)
	w.mustLogin(ada, password, in.User.UUID)
	if len(w.objects("Users")) != 1 || w.registerEvents() != 1 {
		t.Error("there are two users")
	}
}

// An abandoned ident can be linked once no registration can be about to create
// its user.
func TestAnAbandonedIdentCanBeLinked(t *testing.T) {
	w := newFixture(t)
	bob := w.register("bob@example.com", password)
	w.interruptRegistration(ada)
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), with(bob))
	w.wantKind(err, errs.Conflict)
	w.clock.advance(2 * time.Minute)
	bob, _, err = w.Registration.Register(t.Context(), credentials(ada, password), with(bob))
	w.must(err)
	w.mustLogin(ada, password, bob.User.UUID)

	// The ident of a deleted user is abandoned immediately.
	carl := w.register("carl@example.com", password)
	w.must(w.set.Store("Users").Delete(t.Context(), carl.User.UUID, 0))
	_, _, err = w.Registration.Register(t.Context(), credentials("carl@example.com", password), with(bob))
	w.must(err)
	w.cascade()
	w.mustLogin("carl@example.com", password, bob.User.UUID)
}

// An ident that is adopted and linked at the same time belongs to one user.
func TestAdoptingAndLinkingConcurrently(t *testing.T) {
	w := newFixture(t)
	bob := w.register("bob@example.com", password)
	other, _ := w.newService()
	w.interruptRegistration(ada)
	w.clock.advance(2 * time.Minute)
	w.backend.onStep(onceAt(func(s step) bool {
		return s.store == "Idents" && s.uuid == adaIdent && s.write != nil && s.write.IfRevision != 0 && !s.after
	}, func() {
		_, _, err := other.Registration.Register(t.Context(), credentials(ada, password), with(bob))
		w.must(err)
	}))
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, "the password of ada"), from)
	w.wantKind(err, errs.Exists)
	w.mustLogin(ada, password, bob.User.UUID)
	if n := len(w.objects("Users")); n != 1 {
		t.Errorf("%d users, of whom one has no way in", n)
	}
}

func TestARegistrationWhoseSessionFailsCanLogIn(t *testing.T) {
	broken := errors.New("broken")
	w := newFixture(t)
	w.backend.onStep(failWrites("Sessions", broken))
	if _, _, err := w.Registration.Register(t.Context(), credentials(ada, password), from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	w.mustLogin(ada, password, w.objects("Users")[0].UUID)
}

// An unavailable backend does not count as a failed login.
func TestAnUnavailableBackendIsReported(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	in := w.register(ada, password)
	away := errs.New(errs.Unavailable, "away")
	for _, store := range []string{"Idents", "Users", "Sessions", "Tokens"} {
		w.backend.onStep(func(_ context.Context, s step) error {
			if s.store == store {
				return away
			}
			return nil
		})
		for range 4 {
			if _, err := w.Login.Login(t.Context(), credentials(ada, password), from); store != "Tokens" {
				w.wantKind(err, errs.Unavailable)
			}
			if _, err := w.Sessions.Authenticate(t.Context(), in.Token); store == "Users" || store == "Sessions" {
				w.wantKind(err, errs.Unavailable)
			}
			if err := w.Recovery.Request(t.Context(), ada, from); store != "Sessions" {
				w.allowKinds(err, errs.Unavailable, errs.Limited)
			}
		}
		w.backend.onStep(nil)
		w.mustLogin(ada, password, in.User.UUID)
	}
}
