package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// actingAs returns a context of what an admin does.
func (w *fixture) actingAs(admin string) store.Call {
	return store.Call{Client: true, Trusted: true, Origin: event.OriginHTTP, Actor: &admin}
}

func TestAnAdminEndsSessionsOfAUser(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	in := w.register(ada, password)
	other := w.mustLogin(ada, password, in.User.UUID)
	eve := w.register("eve@example.com", password)
	info, key, err := w.Admin.IssueKey(t.Context(), in.User.Stored, keys.New{Name: "backup"})
	w.must(err)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	mail := w.lastMail(ada)
	ctx := store.WithCall(t.Context(), w.actingAs("root"))

	w.must(w.Admin.EndSession(ctx, in.User.UUID, other.ID))
	if w.valid(other.Token) || !w.valid(in.Token) || !w.valid(key) {
		t.Error("another session has ended, or this one has not")
	}
	for _, id := range []string{eve.ID, other.ID, "none", info.ID, ""} {
		w.wantKind(w.Admin.EndSession(ctx, in.User.UUID, id), errs.NotFound)
	}
	if !w.valid(eve.Token) || !w.valid(key) {
		t.Error("a session of somebody else has ended, or a key")
	}
	deleted := w.recorder.of(event.StoreDeleted, "Sessions")
	if len(deleted) != 1 || deleted[0].Actor == nil || *deleted[0].Actor != "root" ||
		deleted[0].Origin != event.OriginHTTP {
		t.Errorf("events: %+v", deleted)
	}

	_, err = w.Admin.EndSessions(ctx, in.User.UUID)
	w.must(err)
	if w.valid(in.Token) || w.valid(key) || !w.valid(eve.Token) {
		t.Error("not all sessions of the user have ended, or others")
	}
	c := credentials(ada, "another password")
	c.Token = mail.token
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.mustLogin(ada, password, in.User.UUID)
	updated := w.recorder.of(event.StoreUpdated, "Users")
	if len(updated) != 1 || updated[0].Actor == nil || *updated[0].Actor != "root" {
		t.Errorf("events: %+v", updated)
	}
	_, err = w.Admin.EndSessions(ctx, "none")
	w.wantKind(err, errs.NotFound)
}

func TestAnAdminSendsARecovery(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins), github)
	in := w.register(ada, password)
	ctx := store.WithCall(t.Context(), w.actingAs("root"))
	address, err := w.Admin.SendRecovery(ctx, in.User.UUID, "")
	w.must(err)
	if address != ada {
		t.Errorf("to %s", address)
	}
	if requested := w.recorder.of(event.StoreSaved, "Tokens"); len(requested) == 0 ||
		requested[len(requested)-1].Actor == nil || *requested[len(requested)-1].Actor != "root" {
		t.Errorf("events: %+v", requested)
	}
	mail := w.lastMail(ada)
	if mail.kind != "recover" {
		t.Errorf("a mail to %s", mail.kind)
	}
	c := credentials(ada, "another password")
	c.Token = mail.token
	w.must(w.Recovery.Recover(t.Context(), c, from))
	w.mustLogin(ada, "another password", in.User.UUID)

	_, err = w.Admin.SendRecovery(ctx, in.User.UUID, "")
	w.wantKind(err, errs.Limited)
	_, err = w.Admin.SendRecovery(ctx, in.User.UUID, "eve@example.com")
	w.wantKind(err, errs.Conflict)
	_, err = w.Admin.SendRecovery(ctx, "none", "")
	w.wantKind(err, errs.NotFound)
	provider, err := w.loginByProvider("1815", from)
	w.must(err)
	_, err = w.Admin.SendRecovery(ctx, provider.User.UUID, "")
	w.wantKind(err, errs.Conflict)
	_, err = w.Admin.SetDisabled(ctx, in.User.UUID, true)
	w.must(err)
	_, err = w.Admin.SendRecovery(ctx, in.User.UUID, ada)
	w.wantKind(err, errs.Conflict)

	// Of several addresses one is chosen.
	bob := w.register("bob@example.com", password)
	_, _, err = w.Registration.Register(t.Context(), credentials("bob@example.org", password), with(bob))
	w.must(err)
	_, err = w.Admin.SendRecovery(ctx, bob.User.UUID, "")
	w.wantKind(err, errs.Conflict)
	address, err = w.Admin.SendRecovery(ctx, bob.User.UUID, "Bob@Example.org")
	w.must(err)
	if address != "bob@example.org" || w.lastMail("bob@example.org").kind != "recover" {
		t.Errorf("a mail to %s", address)
	}

	w = newFixture(t, admins(defaultAdmins), withoutEmail)
	user, err := w.Admin.CreateUser(t.Context(), admin.NewUser{Login: ada, Fields: object.Object{}})
	w.must(err)
	_, err = w.Admin.SendRecovery(ctx, user.UUID, "")
	w.wantKind(err, errs.Conflict)
}

func TestNoAdminStopsBeingOneByAccident(t *testing.T) {
	w := newFixture(t, admins(defaultAdmins))
	in := w.register(ada, password)
	uuid := in.User.UUID
	_, err := w.Admin.SetAdmin(t.Context(), uuid, true)
	w.must(err)
	ctx := store.WithCall(t.Context(), w.actingAs(uuid))
	_, err = w.Admin.SetAdmin(ctx, uuid, false)
	w.wantKind(err, errs.Conflict)
	_, err = w.Admin.SetDisabled(ctx, uuid, true)
	w.wantKind(err, errs.Conflict)
	w.wantKind(w.Admin.DeleteUser(ctx, uuid), errs.Conflict)
	if !w.isAdmin(in.Token) {
		t.Error("no admin any more")
	}
	// What an admin does with others, and what a command does, is not refused.
	eve := w.register("eve@example.com", password)
	for _, admin := range []bool{true, false} {
		_, err = w.Admin.SetAdmin(ctx, eve.User.UUID, admin)
		w.must(err)
	}
	_, err = w.Admin.SetDisabled(ctx, eve.User.UUID, true)
	w.must(err)
	w.must(w.Admin.DeleteUser(ctx, eve.User.UUID))
	command := store.WithCall(t.Context(), store.Call{Origin: event.OriginCommand})
	_, err = w.Admin.SetAdmin(command, uuid, false)
	w.must(err)
}

func TestUsersAreFoundByUuidAddressAndIdent(t *testing.T) {
	w := newFixture(t, github)
	byEmail := w.register(ada, password)
	byProvider, err := w.loginByProvider("1815", from)
	w.must(err)
	for who, want := range map[string]string{
		"ADA@example.com": byEmail.User.UUID, ada + "_email": byEmail.User.UUID, byEmail.User.UUID: byEmail.User.UUID,
		"1815_github": byProvider.User.UUID, byProvider.User.UUID: byProvider.User.UUID,
	} {
		user, err := w.Admin.FindUser(t.Context(), who)
		w.must(err)
		if user.UUID != want {
			t.Errorf("%s: %s, want %s", who, user.UUID, want)
		}
	}
	for _, who := range []string{"", "eve@example.com", "1816_github", "a/b", strings.Repeat("x", 300)} {
		_, err := w.Admin.FindUser(t.Context(), who)
		w.wantKind(err, errs.NotFound)
	}
}

func TestAnAdminUnlinksALoginOfAUserButNotTheLast(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	eve := w.register("eve@example.com", password)
	_, err := w.loginByProvider("1", with(in))
	w.must(err)
	in = w.mustLogin(ada, password, in.User.UUID)
	uuid, ctx := in.User.UUID, store.WithCall(t.Context(), w.actingAs("root"))
	for _, ident := range []string{"eve@example.com_email", "none", "", "a/b"} {
		w.wantKind(w.Admin.UnlinkFor(ctx, uuid, ident), errs.NotFound)
	}
	w.wantKind(w.Admin.UnlinkFor(ctx, "none", ada+"_email"), errs.NotFound)
	w.wantKind(w.Admin.UnlinkFor(ctx, eve.User.UUID, "eve@example.com_email"), errs.Conflict)
	w.must(w.Admin.UnlinkFor(ctx, uuid, ada+"_email"))
	if left := w.idents(uuid); len(left) != 1 || left[0] != "1_github" {
		t.Errorf("left are %v", left)
	}
	if !w.valid(in.Token) {
		t.Error("a session has ended")
	}
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	for _, e := range append(w.recorder.of(event.StoreDeleted, "Idents"),
		w.recorder.of(event.StoreUpdated, "Users")...) {
		if e.Actor == nil || *e.Actor != "root" || e.Origin != event.OriginHTTP {
			t.Errorf("%s %s of %s by %v", e.Origin, e.Event, e.UUID, e.Actor)
		}
	}
	if n := len(w.recorder.of(event.StoreDeleted, "Idents")); n != 1 {
		t.Errorf("%d idents are deleted", n)
	}
	err = w.Admin.UnlinkFor(ctx, uuid, "1_github")
	w.wantKind(err, errs.Conflict)
	if !strings.Contains(err.Error(), "disable the user") {
		t.Error(err)
	}
	if back := w.register(ada, password); back.User.UUID == uuid {
		t.Error("the address is still of the user")
	}
}
