package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// The notice comes first, so no crash between both leaves an admin who looks unnoticed. It has nothing of the admin.
func TestTheUserIsNotifiedBeforeAnAdminSeesAsThem(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices, admins(defaultAdmins))
	user, in := w.register(bob, password), w.register(ada, password)
	_, err := w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
	w.must(err)
	raised := w.enroll(in)
	admin, err := w.Sessions.Authenticate(t.Context(), raised.Token)
	w.must(err)
	ctx := store.WithCall(t.Context(), w.actingAs(admin.User.UUID))
	sees := func() bool {
		t.Helper()
		now, err := w.Sessions.Authenticate(t.Context(), raised.Token)
		w.must(err)
		_, err = w.Admin.Impersonated(ctx, now, user.User.UUID)
		return err == nil
	}
	before := len(w.kinds(bob))
	for _, c := range []struct {
		fails   string // the store whose writes fail
		notices int
	}{{"Tokens", 0}, {"Sessions", 1}} {
		w.backend.onStep(failWrites(c.fails, errs.New(errs.Unavailable, "crashed")))
		err := w.Admin.Impersonate(ctx, admin, user.User.UUID)
		w.backend.onStep(nil)
		w.wantKind(err, errs.Unavailable)
		if sees() {
			t.Errorf("without a write to %s the admin sees as the user", c.fails)
		}
		if got := len(w.kinds(bob)) - before; got != c.notices {
			t.Errorf("without a write to %s the user gets %d notices", c.fails, got)
		}
	}
	w.must(w.Admin.Impersonate(ctx, admin, user.User.UUID))
	if !sees() {
		t.Error("the admin does not see as the user")
	}
	kinds := w.kinds(bob)
	if len(kinds) != before+2 || kinds[len(kinds)-1] != "impersonated" {
		t.Fatalf("notices: %q", kinds)
	}
	if m := w.lastMail(bob); strings.Contains(m.Text, from.Address) || strings.Contains(m.Text, ada) {
		t.Errorf("the notice has something of the admin: %q", m.Text)
	}
	w.wantKinds(ada, "factorAdded")

	// The mark belongs to the session that began it.
	other, err := w.Sessions.Start(t.Context(), admin.User, admin.Proof(), sessions.Client{})
	w.must(err)
	if _, err := w.Admin.Impersonated(ctx, &other.Session, user.User.UUID); err == nil {
		t.Error("another session of the admin sees as the user")
	}
	w.must(w.Admin.EndImpersonation(ctx, admin))
	if sees() {
		t.Error("it has not ended")
	}
}

// Rules see the user as after a login, which asks for no second factor where those are off.
func TestAnAdminSeesAsAUserWithTheFactorsOfALogin(t *testing.T) {
	t.Parallel()
	w := newFixture(t, admins(defaultAdmins))
	user, in := w.register(bob, password), w.register(ada, password)
	_, err := w.Admin.SetAdmin(t.Context(), in.User.UUID, true)
	w.must(err)
	raised := w.enroll(in)
	w.enroll(user)
	admin, err := w.Sessions.Authenticate(t.Context(), raised.Token)
	w.must(err)
	ctx := store.WithCall(t.Context(), w.actingAs(admin.User.UUID))
	w.must(w.Admin.Impersonate(ctx, admin, user.User.UUID))
	admin, err = w.Sessions.Authenticate(t.Context(), raised.Token)
	w.must(err)
	for policy, aal := range map[string]int{sessions.MFAOptional: 2, sessions.MFARequired: 2, sessions.MFAOff: 1} {
		w.Sessions.MFA.Policy = policy
		i, err := w.Admin.Impersonated(ctx, admin, user.User.UUID)
		w.must(err)
		if got := store.CallOf(i.Context(ctx, admin)).Session.AAL; got != aal {
			t.Errorf("with the policy %s rules see the level %d, want %d", policy, got, aal)
		}
	}
}
