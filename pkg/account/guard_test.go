package account_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// A login for an unknown address does the same work as one with a wrong
// password, so that its duration does not reveal whether there is an account.
func TestALoginDoesTheSameWorkForAnUnknownAddress(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.UniformErrors = true })
	w.register(ada, password)
	w.Close()
	work := func(login string) (done []string) {
		w.ObserveHashes(func(p passwords.HashParams) { done = append(done, fmt.Sprintf("hash %+v", p)) })
		w.backend.onStep(func(ctx context.Context, s step) error {
			_, background := ctx.Deadline() // only background work has one here
			if s.write == nil && !background {
				done = append(done, "read "+s.store)
			}
			return nil
		})
		defer w.backend.onStep(nil)
		_, err := w.Login.Login(t.Context(), credentials(login, "a wrong password"), from)
		w.wantKind(err, errs.Denied)
		return slices.Clone(done)
	}
	known, unknown := work(ada), work("bob@example.com")
	w.Close()
	if len(known) < 3 || !slices.Equal(known, unknown) {
		t.Errorf("known: %v, unknown: %v", known, unknown)
	}
}

// flow begins an OAuth flow and returns it with the query of its callback.
func (w *fixture) flow(linking bool, c sessions.Client, who string) (providers.Flow, url.Values) {
	w.Helper()
	flow, err := w.Providers.Begin(w.Context(), "github", linking, c)
	w.must(err)
	u, err := url.Parse(flow.URL)
	w.must(err)
	return flow, url.Values{"state": {u.Query().Get("state")}, "code": {who}}
}

func (w *fixture) wantBadState(query url.Values, secret string, c sessions.Client) {
	w.Helper()
	_, _, err := w.Login.FinishProvider(w.Context(), query, secret, c)
	w.wantKind(err, errs.Mismatch)
}

func TestAnOAuthCallbackIsBoundToItsBrowser(t *testing.T) {
	w := newFixture(t, github)
	flow, query := w.flow(false, from, "1815")
	other, _ := w.flow(false, from, "666")
	w.wantBadState(query, "", from)
	w.wantBadState(query, "guess", from)
	w.wantBadState(query, other.Secret, from)
	if len(w.objects("Users"))+len(w.objects("Sessions")) > 0 {
		t.Error("another browser was logged in")
	}
	_, _, err := w.Login.FinishProvider(t.Context(), query, flow.Secret, from)
	w.must(err)
}

func TestAnOAuthCallbackIsValidOnce(t *testing.T) {
	w := newFixture(t, github)
	flow, query := w.flow(false, from, "1815")
	_, _, err := w.Login.FinishProvider(t.Context(), query, flow.Secret, from)
	w.must(err)
	w.wantBadState(query, flow.Secret, from)
	if n := len(w.objects("Sessions")); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

func TestAnOAuthFlowExpires(t *testing.T) {
	w := newFixture(t, github)
	flow, query := w.flow(false, from, "1815")
	w.clock.advance(providers.FlowTTL)
	w.wantBadState(query, flow.Secret, from)
	flow, query = w.flow(false, from, "1815")
	w.clock.advance(providers.FlowTTL - time.Microsecond)
	_, _, err := w.Login.FinishProvider(t.Context(), query, flow.Secret, from)
	w.must(err)
}

func TestAnOAuthFlowLinksOnlyToTheUserWhoBeganIt(t *testing.T) {
	w := newFixture(t, github)
	eve, victim := w.register("eve@example.com", password), w.register(ada, password)
	for _, c := range []sessions.Client{with(victim), from} {
		flow, query := w.flow(true, with(eve), "666")
		w.wantBadState(query, flow.Secret, c)
	}
	if w.record("Idents", "666_github") != nil {
		t.Error("eve's identity was linked")
	}
	flow, query := w.flow(false, with(victim), "1815") // a login links nothing
	in, _, err := w.Login.FinishProvider(t.Context(), query, flow.Secret, with(victim))
	w.must(err)
	if in.User.UUID == victim.User.UUID {
		t.Error("a login has linked an identity")
	}
}

func TestALinkDoesNotMoveAnIdentityToAnotherUser(t *testing.T) {
	w := newFixture(t, github)
	owner, err := w.loginByProvider("1815", from)
	w.must(err)
	_, err = w.loginByProvider("1815", with(w.register(ada, password)))
	w.wantKind(err, errs.Exists)
	if user, _ := w.record("Idents", "1815_github").Text("user"); user != owner.User.UUID {
		t.Error("the identity belongs to another user")
	}
}

// Each of the three accesses that a stranger may have to an account is taken by
// a recovery.
func TestARecoveryRemovesSessionsIdentsAndTokensOfOthers(t *testing.T) {
	w := newFixture(t, github)
	eve := w.hijack(ada)
	token := w.requestRecovery("eve@example.com", "the password of eve")
	second := w.mustLogin(ada, password, eve.User.UUID)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "the password of ada"), from))

	for _, session := range []sessions.Issued{eve, second} {
		if w.valid(session.Token) {
			t.Error("a session of the stranger is valid")
		}
	}
	for _, ident := range []string{"666_github", "eve@example.com_email"} {
		if w.record("Idents", ident) != nil {
			t.Errorf("ident %s of the stranger is left", ident)
		}
	}
	w.wantKind(w.Recovery.Recover(t.Context(), token, from), errs.Denied)
}

// A recovery token that was consumed takes the others of its mailbox with it.
func TestARecoveryInvalidatesEarlierTokens(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	first := w.requestRecovery(ada, "the first password")
	w.clock.advance(w.email.MailInterval)
	second := w.requestRecovery(ada, "the second password")
	w.must(w.Recovery.Recover(t.Context(), second, from))
	w.wantKind(w.Recovery.Recover(t.Context(), first, from), errs.Denied)
	w.mustLogin(ada, "the second password", in.User.UUID)
}

// A recovery that is interrupted once the password is set has already removed
// the idents of a stranger.
func TestAnInterruptedRecoveryLeavesAStrangerNoIdent(t *testing.T) {
	w := newFixture(t, github)
	eve := w.hijack(ada)
	c := w.requestRecovery(ada, "the password of ada")
	before, _ := w.record("Users", eve.User.UUID).Text("password")
	broken := errors.New("broken")
	var failing atomic.Bool
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.write == nil {
			return nil
		}
		if failing.Load() && !s.after {
			return broken
		}
		if s.store == "Users" && s.after {
			now, _ := w.record("Users", eve.User.UUID).Text("password")
			failing.Store(now != before)
		}
		return nil
	})
	if err := w.Recovery.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
		t.Errorf("idents: %v", got)
	}
}

func TestOAuthFlowsCountAgainstTheNetworkAddress(t *testing.T) {
	w := newFixture(t, limits(2, 0), github)
	for range 3 { // logins that succeed cost nothing
		_, err := w.loginByProvider("1815", from)
		w.must(err)
	}
	w.flow(false, from, "1815")
	w.flow(false, from, "1815")
	_, err := w.Providers.Begin(t.Context(), "github", false, from)
	w.wantLimited(err, 30*time.Second)
}

// refusing is an interceptor that refuses every registration.
type refusing struct{ t *testing.T }

func (r refusing) Intercept(_ context.Context, q store.InterceptRequest) (object.Object, error) {
	if q.Op != "register" || strings.Contains(string(q.Object)+string(q.Datas), "password") {
		r.t.Errorf("asked %s with %s and %s", q.Op, q.Object, q.Datas)
	}
	return nil, errs.New(errs.Denied, "refused")
}

func TestAnInterceptorCanRefuseEveryRegistration(t *testing.T) {
	w := newFixture(t, github, func(o *account.Options) { o.Interceptor = refusing{t} })
	_, err := w.loginByProvider("1815", from)
	w.wantKind(err, errs.Denied)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	if len(w.objects("Users"))+len(w.objects("Idents")) > 0 {
		t.Error("something was written")
	}
}

// The idents that a recovery is about to delete do not count any more: the
// stranger cannot unlink the owner's address instead.
func TestAStrangerCannotUnlinkTheAddressDuringARecovery(t *testing.T) {
	w := newFixture(t, github)
	eve := w.squat(ada)
	eve = w.mustLogin(ada, password, eve.User.UUID)
	c := w.requestRecovery(ada, "the password of ada")
	w.Close()
	broken := errors.New("broken")
	w.backend.onStep(failWrites("Idents", broken))
	if err := w.Recovery.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	w.wantKind(w.Links.Unlink(t.Context(), &eve.Session, adaIdent), errs.Conflict)
}

func TestASessionThatWasRevokedSetsNoPassword(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.must(w.Sessions.Logout(t.Context(), &in.Session))
	_, err := w.Recovery.ChangePassword(t.Context(), password, "a new password", with(in))
	w.wantKind(err, errs.Unauthenticated)
	w.mustLogin(ada, password, in.User.UUID)
}

// Only the user of the account proves it by following the link, not any user.
func TestALinkFollowedByAnotherUserDoesNotProveTheAccount(t *testing.T) {
	w := newFixture(t, github)
	eve := w.hijack(ada)
	bob := w.register("bob@example.com", password)
	w.clock.advance(w.email.MailInterval)
	_, err := w.Registration.FollowLink(t.Context(), ada, w.lastMail(ada).token, with(bob))
	w.must(err)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "the password of ada"), from))
	if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
		t.Errorf("idents: %v", got)
	}
}

func TestTheOldestTokensOfAMailboxAreDropped(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	var all []passwords.Credentials
	for range 9 {
		w.clock.advance(w.email.MailInterval)
		all = append(all, w.requestRecovery(ada, "a new password"))
	}
	w.wantKind(w.Recovery.Recover(t.Context(), all[0], from), errs.Denied)
	w.must(w.Recovery.Recover(t.Context(), all[1], from))
}

// An index that lags may find an object that belongs to another user by now.
func TestALaggingIndexDoesNotShowSessionsOfOthers(t *testing.T) {
	w := newFixture(t)
	ada, bob := w.register(ada, password), w.register("bob@example.com", password)
	record, _, err := w.backend.open["Sessions"].Get(t.Context(), bob.ID)
	w.must(err)
	w.backend.lagIndex("Sessions", record)
	list, err := w.Sessions.List(t.Context(), &ada.Session)
	w.must(err)
	if len(list) != 1 || list[0].ID != ada.ID {
		t.Errorf("sessions: %+v", list)
	}
}

// An ident that is linked again while it is being unlinked counts, so the other
// ident may be unlinked, and then this one is the last.
func TestAnIdentLinkedAgainDuringAnUnlinkIsNotDeletedAsItWas(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	in, err := w.loginByProvider("666", with(in))
	w.must(err)
	other, _ := w.newService()
	again, query := w.flow(true, with(in), "666")
	marked := func(s step) bool { return s.store == "Users" && s.write != nil && s.after }
	w.backend.onStep(onceAt(marked, func() {
		_, _, err := other.Login.FinishProvider(t.Context(), query, again.Secret, with(in))
		w.must(err)
		w.must(other.Links.Unlink(t.Context(), &in.Session, adaIdent))
	}))
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, "666_github"), errs.Conflict)
	if got := w.idents(in.User.UUID); !slices.Equal(got, []string{"666_github"}) {
		t.Errorf("idents: %v", got)
	}
}

// patching is an interceptor that adds a patch to every registration.
type patching struct {
	patch string
	asked *int
}

func (p patching) Intercept(context.Context, store.InterceptRequest) (object.Object, error) {
	*p.asked++
	return object.Decode([]byte(p.patch))
}

func TestAnInterceptorCannotSetServerOwnedFields(t *testing.T) {
	var asked int
	w := newFixture(t, func(o *account.Options) {
		o.Interceptor = patching{`{"name":"Ada","_epoch":7,"idents":[{"uuid":"x"}],"uuid":"x"}`, &asked}
	})
	in := w.register(ada, password)
	user := w.record("Users", in.User.UUID)
	if name, _ := user.Text("name"); name != "Ada" || user["_epoch"] != nil ||
		strings.Contains(string(user["idents"]), "x") || in.User.UUID == "x" {
		t.Errorf("user %s", user.Encode())
	}
}

func TestAnInterceptorIsNotAskedAboutAWrongToken(t *testing.T) {
	var asked int
	w := newFixture(t, validatedFirst, func(o *account.Options) { o.Interceptor = patching{`{}`, &asked} })
	c := credentials(ada, password)
	c.Token = "wrong"
	_, _, err := w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Denied)
	if asked != 0 {
		t.Error("the interceptor was asked")
	}
}

// While every core hashes for others, logins are refused, and none of those that were not
// tried counts as a failure of its account.
func TestALoginThatWaitsTooLongForACoreIsLimited(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Limits.Account = 5 })
	w.register(ada, password)
	user := w.objects("Users")[0].UUID
	busy, hold := make(chan struct{}, 1000), make(chan struct{})
	w.ObserveHashes(func(passwords.HashParams) {
		busy <- struct{}{}
		<-hold
	})
	var running sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for i := range cores {
		running.Go(func() {
			_, err := w.Login.Login(t.Context(), credentials(fmt.Sprintf("nobody%d@example.com", i), password), from)
			w.allowKinds(err, errs.NotFound)
		})
	}
	for range cores {
		<-busy
	}
	// Not before, or those that take the cores may be limited.
	w.QueueTime(time.Millisecond)
	for range 20 { // more than the failures that delay an account
		_, err := w.Login.Login(t.Context(), credentials(ada, password), sessions.Client{Address: "198.51.100.1"})
		w.wantKind(err, errs.Limited)
		var e *errs.Error
		if !errors.As(err, &e) || e.RetryAfter != account.MaxQueueTime ||
			!strings.Contains(e.Message, "too many logins at once") {
			t.Fatalf("%+v", err)
		}
	}
	_, _, err := w.Registration.Register(t.Context(), credentials("bob@example.com", password),
		sessions.Client{Address: "198.51.100.1"})
	w.wantKind(err, errs.Limited)
	close(hold)
	running.Wait()
	w.QueueTime(account.MaxQueueTime)
	w.mustLogin(ada, password, user)
}
