package account_test

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/post"
	"belfry/pkg/errs"
)

// account returns a user as admins see them.
func (w *fixture) account(uuid string) admin.Account {
	w.Helper()
	stored, err := w.Admin.FindUser(w.Context(), uuid)
	w.must(err)
	a, err := w.Admin.AccountDetails(w.Context(), stored)
	w.must(err)
	return a
}

func TestAnInvitedUserSetsTheFirstPassword(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const eve = "eve@example.com"
	uuid := w.person(eve, "Eve")
	if a := w.account(uuid); a.Invitation != nil {
		t.Errorf("invited: %+v", a.Invitation)
	}
	address, err := w.Admin.Invite(t.Context(), uuid)
	if w.must(err); address != eve {
		t.Errorf("the mail is for %s", address)
	}
	w.must(w.deliverMails())
	a := w.account(uuid)
	if a.Invitation == nil || a.Invitation.Expired || a.Invitation.Address != eve {
		t.Fatalf("the invitation is %+v", a.Invitation)
	}

	// Nobody can log in before it is accepted.
	for _, guess := range []string{"", password} {
		if _, err := w.Login.Login(t.Context(), passwords.Credentials{Login: eve, Password: guess}, from); err == nil {
			t.Errorf("logged in by %q", guess)
		}
	}

	// The link is valid for longer than that of a recovery, and not forever.
	first := w.lastMail(eve)
	w.isInvitation(first, true)
	w.clock.advance(w.email.RecoveryTTL + time.Minute)
	landing, err := w.Registration.FollowLink(t.Context(), eve, first.secret(), from)
	if w.must(err); landing != post.OpenInvitation || !landing.HasForm() {
		t.Errorf("the link leads to %v", landing)
	}
	w.clock.advance(w.email.TokenTTL)
	_, err = w.Registration.FollowLink(t.Context(), eve, first.secret(), from)
	w.wantKind(err, errs.Denied)
	accept := func(token string) error {
		return w.Recovery.Recover(t.Context(), passwords.Credentials{Login: eve, Password: password, Token: token},
			from)
	}
	w.wantKind(accept(first.secret()), errs.Denied)
	if a := w.account(uuid); a.Invitation == nil || !a.Invitation.Expired {
		t.Errorf("the invitation is %+v", a.Invitation)
	}

	_, err = w.Admin.Invite(t.Context(), uuid)
	w.must(err)
	w.must(w.deliverMails())
	again := w.account(uuid).Invitation
	if again == nil || again.Expired {
		t.Errorf("the invitation that was sent again is %+v", again)
	}
	_, err = w.Admin.Invite(t.Context(), uuid) // within the interval of mails
	w.wantKind(err, errs.Limited)
	if now := w.account(uuid).Invitation; now == nil || *now != *again {
		t.Errorf("the invitation is %+v, without a mail", now)
	}
	w.isInvitation(w.lastMail(eve), true)
	w.must(accept(w.lastMail(eve).secret()))
	if a := w.account(uuid); a.Invitation != nil || !a.HasPassword || !a.Idents[0].Validated {
		t.Errorf("after it was accepted: %+v", a)
	}
	w.mustLogin(eve, password, uuid)
	_, err = w.Admin.Invite(t.Context(), uuid)
	w.wantKind(err, errs.Conflict)

	// From now on the mail is that of a recovery.
	w.clock.advance(w.email.MailInterval)
	_, err = w.Admin.SendRecovery(t.Context(), uuid, "")
	w.must(err)
	w.must(w.deliverMails())
	recovery := w.lastMail(eve)
	w.isInvitation(recovery, false)
	landing, err = w.Registration.FollowLink(t.Context(), eve, recovery.secret(), from)
	if w.must(err); landing != post.OpenRecovery {
		t.Errorf("the link leads to %v", landing)
	}
}

// isInvitation checks whether a mail has the texts of an invitation.
func (w *fixture) isInvitation(m sentMail, want bool) {
	w.Helper()
	if got := strings.Contains(m.Subject, "invite"); got != want {
		w.Errorf("the mail %q is an invitation: %t", m.Subject, got)
	}
}

func TestOnlyNewUsersWithAnAddressAreInvited(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	robot, err := w.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true})
	w.must(err)
	eve := w.person("eve@example.com", "Eve")
	_, err = w.Admin.SetDisabled(t.Context(), eve, true)
	w.must(err)
	for _, uuid := range []string{robot.UUID, eve, w.register(ada, password).User.UUID} {
		_, err := w.Admin.Invite(t.Context(), uuid)
		w.wantKind(err, errs.Conflict)
		if a := w.account(uuid); a.Invitation != nil {
			t.Errorf("invited: %+v", a.Invitation)
		}
	}
	_, err = w.Admin.Invite(t.Context(), "nobody")
	w.wantKind(err, errs.NotFound)
}

// Two requests at once, as of a double click: the one that comes too early must not take back the other's invitation.
func TestOfTwoInvitationsAtOnceOneIsSent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	const eve = "eve@example.com"
	uuid := w.person(eve, "Eve")
	var marked bool
	mails := func(s step) bool { // the first has marked the user, and reads them for the mail
		marked = marked || s.store == "Idents" && s.after
		return marked && s.store == "Users" && s.write == nil
	}
	w.backend.onStep(onceAt(mails, func() {
		w.clock.advance(time.Second)
		_, err := w.Admin.Invite(t.Context(), uuid)
		w.must(err)
	}))
	_, err := w.Admin.Invite(t.Context(), uuid)
	w.backend.onStep(nil)
	w.wantKind(err, errs.Limited)
	w.must(w.deliverMails())
	w.isInvitation(w.lastMail(eve), true)
	if a := w.account(uuid); a.Invitation == nil {
		t.Error("the user is not shown as invited")
	}
}
