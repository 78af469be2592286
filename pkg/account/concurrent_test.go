package account_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// twoServices are two services, as in two processes.
func (w *fixture) twoServices() [2]*account.Service {
	w.Helper()
	other, _ := w.newService()
	return [2]*account.Service{w.Service, other}
}

// concurrently runs n calls at the same time, alternating between the services,
// and waits for them.
func concurrently(services [2]*account.Service, n int, do func(i int, s *account.Service)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i, services[i%2])
		})
	}
	close(start)
	all.Wait()
}

// The other registrations leave nothing.
func TestConcurrentRegistrationsCreateOneUser(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	const rounds, many = 60, 4
	for round := range rounds {
		login := fmt.Sprintf("ada%d@example.com", round)
		var won atomic.Pointer[sessions.Issued]
		concurrently(services, many, func(i int, s *account.Service) {
			in, _, err := s.Registration.Register(t.Context(), credentials(login, fmt.Sprintf("the password of %d", i)),
				from)
			w.allowKinds(err, errs.Exists, errs.Conflict)
			if err == nil && !won.CompareAndSwap(nil, &in) {
				t.Error("two have registered")
			}
		})
		in := won.Load()
		if in == nil {
			t.Fatal("no registration succeeded")
		}
		if got := w.idents(in.User.UUID); len(got) != 1 || len(w.objects("Users")) != round+1 ||
			len(w.objects("Idents")) != round+1 {
			t.Fatalf("%v, %d users, %d idents", got, len(w.objects("Users")), len(w.objects("Idents")))
		}
		let := 0
		for i := range many {
			if in, err := w.Login.Login(t.Context(), credentials(login, fmt.Sprintf("the password of %d", i)),
				from); err == nil && in.User.UUID == won.Load().User.UUID {
				let++
			}
		}
		if let != 1 || !w.valid(in.Token) {
			t.Fatalf("%d passwords are right", let)
		}
	}
	if n := len(w.recorder.of(event.Register, "Users")); n != rounds {
		t.Errorf("%d Register events, want %d", n, rounds)
	}
}

func TestConcurrentUsesOfATokenSucceedOnce(t *testing.T) {
	w := newFixture(t, validatedFirst)
	services := w.twoServices()
	for round := range 30 {
		login := fmt.Sprintf("ada%d@example.com", round)
		_, _, err := w.Registration.Register(t.Context(), credentials(login, password), from)
		w.must(err)
		token := w.lastMail(login).token
		var won atomic.Int32
		use := func(do func(c passwords.Credentials, s *account.Service) error) {
			t.Helper()
			won.Store(0)
			concurrently(services, 4, func(i int, s *account.Service) {
				c := credentials(login, fmt.Sprintf("the password of %d", i))
				c.Token = token
				err := do(c, s)
				w.allowKinds(err, errs.Denied)
				if err == nil {
					won.Add(1)
				}
			})
			if won.Load() != 1 {
				t.Fatalf("%d uses of one token", won.Load())
			}
		}
		use(func(c passwords.Credentials, s *account.Service) error {
			_, _, err := s.Registration.Register(t.Context(), c, from)
			return err
		})
		token = w.requestRecovery(login, password).Token
		use(func(c passwords.Credentials, s *account.Service) error {
			return s.Recovery.Recover(t.Context(), c, from)
		})
	}
	if n := len(w.objects("Users")); n != 30 {
		t.Errorf("%d users", n)
	}
}

func TestConcurrentRequestsSendOneMail(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 20 {
		login := fmt.Sprintf("ada%d@example.com", round)
		w.register(login, password)
		for turn := range 2 { // the first, and one that follows another
			var won atomic.Int32
			concurrently(services, 6, func(_ int, s *account.Service) {
				err := s.Recovery.Request(t.Context(), login, from)
				w.allowKinds(err, errs.Limited)
				if err == nil {
					won.Add(1)
				}
			})
			if n := w.countMails(login); won.Load() != 1 || n != 2+turn {
				t.Fatalf("%d mails were requested, and %d arrived", won.Load(), n)
			}
			w.clock.advance(w.email.MailInterval)
		}
	}
}

// A password change also ends the session of a login with the old password at
// the same time.
func TestNoSessionSurvivesAPasswordChange(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 30 {
		login := fmt.Sprintf("ada%d@example.com", round)
		in := w.register(login, password)
		var before [5]sessions.Issued
		concurrently(services, len(before)+1, func(i int, s *account.Service) {
			if i == len(before) {
				_, err := s.Recovery.ChangePassword(t.Context(), password, "a new password", with(in))
				w.allowKinds(err)
				return
			}
			var err error
			before[i], err = s.Login.Login(t.Context(), credentials(login, password), from)
			w.allowKinds(err, errs.Denied)
		})
		for _, b := range append(before[:], in) {
			if w.valid(b.Token) {
				t.Fatal("a session from before is good")
			}
		}
		w.mustLogin(login, "a new password", in.User.UUID)
	}
}

func TestConcurrentPasswordChangesSucceedOnce(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 20 {
		login := fmt.Sprintf("ada%d@example.com", round)
		in := w.register(login, password)
		var won [3]sessions.Issued
		concurrently(services, len(won), func(i int, s *account.Service) {
			var err error
			won[i], err = s.Recovery.ChangePassword(t.Context(), password, fmt.Sprintf("the password of %d", i),
				with(in))
			w.allowKinds(err, errs.Unauthenticated, errs.Denied)
		})
		good := 0
		for i, x := range won {
			if x.Token == "" {
				continue
			}
			good++
			if !w.valid(x.Token) {
				t.Error("the session of the one who changed it is not good")
			}
			w.mustLogin(login, fmt.Sprintf("the password of %d", i), in.User.UUID)
		}
		if good != 1 {
			t.Fatalf("%d have changed it", good)
		}
	}
}

// An address belongs to one user, whether it is registered or linked.
func TestConcurrentRegistrationAndLinkOfAnAddress(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 30 {
		login := fmt.Sprintf("shared%d@example.com", round)
		bob := w.register(fmt.Sprintf("bob%d@example.com", round), password)
		carl := w.register(fmt.Sprintf("carl%d@example.com", round), password)
		var won [3]sessions.Issued
		concurrently(services, len(won), func(i int, s *account.Service) {
			c := from
			switch i {
			case 1:
				c = with(bob)
			case 2:
				c = with(carl)
			}
			var err error
			won[i], _, err = s.Registration.Register(t.Context(), credentials(login, password), c)
			w.allowKinds(err, errs.Exists, errs.Conflict)
		})
		users := 0
		for _, x := range won {
			if x.Token == "" {
				continue
			}
			users++
			w.mustLogin(login, password, x.User.UUID)
		}
		if users != 1 {
			t.Fatalf("%d have the address", users)
		}
	}
}

// A user who is deleted during a login has no session.
func TestNoSessionSurvivesItsUser(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 20 {
		login := fmt.Sprintf("ada%d@example.com", round)
		in := w.register(login, password)
		var late [3]sessions.Issued
		concurrently(services, len(late)+1, func(i int, s *account.Service) {
			if i == len(late) {
				w.allowKinds(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
				return
			}
			var err error
			late[i], err = s.Login.Login(t.Context(), credentials(login, password), from)
			w.allowKinds(err, errs.NotFound)
		})
		for _, l := range append(late[:], in) {
			if w.valid(l.Token) {
				t.Fatal("a session of a deleted user is valid")
			}
		}
	}
}

// The idents of a deleted user do not affect a new user with the same address.
func TestConcurrentDeletionAndRegistration(t *testing.T) {
	w := newFixture(t)
	services := w.twoServices()
	for round := range 20 {
		login := fmt.Sprintf("ada%d@example.com", round)
		old := w.register(login, password)
		w.must(w.set.Store("Users").Delete(t.Context(), old.User.UUID, 0))
		var won atomic.Pointer[sessions.Issued]
		concurrently(services, 4, func(i int, s *account.Service) {
			if i == 3 {
				w.cascade()
				return
			}
			in, _, err := s.Registration.Register(t.Context(), credentials(login, "a new password"), from)
			w.allowKinds(err, errs.Exists, errs.Conflict)
			if err == nil && !won.CompareAndSwap(nil, &in) {
				t.Error("two have registered")
			}
		})
		w.cascade()
		in := won.Load()
		if in == nil {
			t.Fatal("no registration succeeded")
		}
		w.mustLogin(login, "a new password", in.User.UUID)
	}
}
