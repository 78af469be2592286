package account_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/keys"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

func TestExportsOfAUserAreLimited(t *testing.T) {
	w := newFixture(t)
	in, bob := w.register(ada, password), w.register("bob@example.com", password)
	other, _ := w.newService()
	first, err := w.Exports.Begin(t.Context(), &in.Session)
	w.must(err)
	if e := w.authEvents(event.AuthExported); len(e) != 1 || e[0].Session != in.ID {
		t.Errorf("events %+v", e)
	}
	// One at a time, in all processes; others are not affected.
	for _, s := range []*account.Service{w.Service, other} {
		_, err = s.Exports.Begin(t.Context(), &in.Session)
		w.wantKind(err, errs.Limited)
	}
	ofBob, err := other.Exports.Begin(t.Context(), &bob.Session)
	w.must(err)
	ofBob.End(t.Context())
	w.clock.advance(90 * time.Second)
	w.must(first.Renew(t.Context()))
	w.clock.advance(90 * time.Second)
	_, err = w.Exports.Begin(t.Context(), &in.Session)
	w.wantKind(err, errs.Limited)
	// One whose process has crashed ends by itself.
	w.clock.advance(time.Minute)
	second, err := other.Exports.Begin(t.Context(), &in.Session)
	w.must(err)
	w.wantKind(first.Renew(t.Context()), errs.Conflict)
	first.End(t.Context()) // does not end the second one
	_, err = w.Exports.Begin(t.Context(), &in.Session)
	w.wantKind(err, errs.Limited)
	second.End(t.Context())
	for range 3 {
		e, err := w.Exports.Begin(t.Context(), &in.Session)
		w.must(err)
		e.End(t.Context())
	}
	_, err = other.Exports.Begin(t.Context(), &in.Session)
	w.wantKind(err, errs.Limited)
	w.clock.advance(time.Hour)
	in = w.mustLogin(ada, password, in.User.UUID)
	last, err := w.Exports.Begin(t.Context(), &in.Session)
	w.must(err)
	// A session that ends, ends the export.
	_, err = w.Admin.EndSessions(t.Context(), in.User.UUID)
	w.must(err)
	w.wantKind(last.Renew(t.Context()), errs.Unauthenticated)
	last.End(t.Context())
	w.clock.advance(3 * time.Hour)
	_, err = w.DeleteExpired(t.Context(), 100)
	w.must(err)
	for _, o := range w.objects("Tokens") {
		if strings.HasPrefix(o.UUID, "export-") {
			t.Errorf("%s is left", o.UUID)
		}
	}
}

func TestWhoCantExport(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	_, token := w.key(in, keys.New{Name: "deploy"})
	key, err := w.Sessions.Authenticate(t.Context(), token)
	w.must(err)
	_, err = w.Exports.Begin(t.Context(), key)
	w.wantKind(err, errs.Denied)
	w.clock.advance(11 * time.Minute)
	_, err = w.Exports.Begin(t.Context(), &in.Session)
	if step := (*errs.StepUp)(nil); !errors.As(err, &step) {
		t.Error("an old session:", err)
	}
	in = w.mustLogin(ada, password, in.User.UUID)
	w.must(w.Sessions.Logout(t.Context(), &in.Session))
	_, err = w.Exports.Begin(t.Context(), &in.Session)
	w.wantKind(err, errs.Unauthenticated)
	if len(w.authEvents(event.AuthExported)) > 0 {
		t.Error("an export has begun")
	}
}

func TestAnExportedAccountHasNoSecrets(t *testing.T) {
	w := newFixture(t, deletable)
	in := w.register(ada, password)
	_, token := w.key(in, keys.New{Name: "deploy", Rule: "true"})
	exported, err := w.Exports.Account(t.Context(), &in.Session)
	w.must(err)
	text, err := json.Marshal(exported)
	w.must(err)
	for _, secret := range []string{token, in.Token, token[len(exported.Keys[0].ID):], "argon2", `"password":`, "_hash",
		"_epoch"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the account has %s: %s", secret, text)
		}
	}
	if internal := regexp.MustCompile(`"_[^"]*":`).Find(text); internal != nil { // an id may begin with _
		t.Errorf("the account has %s: %s", internal, text)
	}
	if len(exported.Idents) != 1 || len(exported.Sessions) != 1 || len(exported.Keys) != 1 ||
		exported.Keys[0].Name != "deploy" || !strings.Contains(string(text), in.User.UUID) {
		t.Errorf("%s", text)
	}
}
