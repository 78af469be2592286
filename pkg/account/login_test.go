package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestLogin(t *testing.T) {
	w := newFixture(t)
	first := w.register(ada, password)
	in := w.mustLogin("ADA@Example.com", password, first.User.UUID)
	if in.ID == first.ID || in.Token == first.Token || !w.valid(in.Token) || !w.valid(first.Token) {
		t.Error("a login has no token of its own")
	}
	for _, c := range []struct {
		login, password string
		want            errs.Kind
	}{
		{"", password, errs.Invalid}, {ada, "", errs.Invalid}, {"", "", errs.Invalid},
		{"bob@example.com", password, errs.NotFound}, {ada, "another password", errs.Denied},
		{ada, password + " ", errs.Denied}, {ada, strings.Repeat("x", passwords.MaxPassword+1), errs.Denied},
	} {
		in, err := w.Login.Login(t.Context(), credentials(c.login, c.password), from)
		w.wantKind(err, c.want)
		if in.Token != "" {
			t.Errorf("%q, %q: a token", c.login, c.password)
		}
	}
	w.Close()
	if at, _ := w.record("Idents", "ada@example.com_email").Text("lastUsed"); at != "2030-01-02T03:04:05.000000Z" {
		t.Errorf("last used %q", at)
	}
}

func TestUniformErrorsAreEqual(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.UniformErrors = true })
	w.register(ada, password)
	_, wrong := w.Login.Login(t.Context(), credentials(ada, "another password"), from)
	w.wantKind(wrong, errs.Denied)
	for _, login := range []string{"bob@example.com", "no address", "ada@example.com\x00", strings.Repeat("x", 300)} {
		_, unknown := w.Login.Login(t.Context(), credentials(login, "another password"), from)
		w.wantKind(unknown, errs.Denied)
		if unknown.Error() != wrong.Error() {
			t.Errorf("%q: %q, not %q", login, unknown, wrong)
		}
	}
}

func TestAnIdentWithoutAUserIsUnknown(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	if w.valid(in.Token) {
		t.Error("the session of a deleted user is valid")
	}
}

// A hash is replaced once, at a login, if its parameters are weaker than those
// of new hashes, and never by that of another password.
func TestAWeakHashIsReplaced(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	hash := func() string { h, _ := w.record("Users", in.User.UUID).Text("password"); return h }
	weak := hash()
	w.opts.Hash = passwords.HashParams{Memory: 16, Time: 2, Threads: 1}
	strong, set := w.newService()
	w.Service, w.set = strong, set

	_, err := w.Login.Login(t.Context(), credentials(ada, "another password"), from)
	w.wantKind(err, errs.Denied)
	if w.Close(); hash() != weak {
		t.Error("replaced by a wrong password")
	}
	w.mustLogin(ada, password, in.User.UUID)
	w.Close()
	better := hash()
	if !strings.HasPrefix(better, "$argon2id$v=19$m=16,t=2,p=1$") {
		t.Errorf("the hash is %s", better)
	}
	w.mustLogin(ada, password, in.User.UUID)
	if w.Close(); hash() != better {
		t.Error("replaced again")
	}
	if !w.valid(in.Token) {
		t.Error("a session ended with the hash")
	}

	// A stronger hash is kept.
	w.opts.Hash = cheapHash
	w.Service, w.set = w.newService()
	w.mustLogin(ada, password, in.User.UUID)
	if w.Close(); hash() != better {
		t.Error("replaced by a weaker one")
	}
}

// A password that is set at the same time is not overwritten.
func TestAReplacedHashDoesNotUndoANewPassword(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.opts.Hash = passwords.HashParams{Memory: 16, Time: 2, Threads: 1}
	other, _ := w.newService()
	reached, goOn := make(chan struct{}), make(chan struct{})
	w.backend.onStep(onceAt(func(s step) bool { return s.store == "Users" && s.write != nil && !s.after }, func() {
		close(reached)
		<-goOn
	}))
	_, err := other.Login.Login(t.Context(), credentials(ada, password), from)
	w.must(err)
	<-reached // the stronger hash is about to be written
	next, err := w.Recovery.ChangePassword(t.Context(), password, "a new password", with(in))
	w.must(err)
	close(goOn)
	other.Close()
	w.mustLogin(ada, "a new password", in.User.UUID)
	if !w.valid(next.Token) {
		t.Error("the new session has ended")
	}
}

// A stored password that is no hash is an internal error; it is not quoted, and
// the account is not delayed.
func TestAnInvalidHashIsNotQuoted(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	in := w.register(ada, password)
	keep := func(password string) {
		t.Helper()
		fields := object.Object{}
		fields.Set("password", password)
		_, err := w.set.Store("Users").Mutate(t.Context(), in.User.UUID, func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: fields}, nil
		})
		w.must(err)
	}
	hash, _ := w.record("Users", in.User.UUID).Text("password")
	for _, kept := range []string{
		"plain-text-secret", "$argon2id$v=19$m=8,t=1,p=1$!!$secret", "$argon2i$v=19$m=8,t=1,p=1$c2FsdA$c2VjcmV0",
		"$argon2id$v=18$m=8,t=1,p=1$c2FsdA$c2VjcmV0",
		"$argon2id$v=19$m=8,t=0,p=1$c2FsdA$c2VjcmV0", "$argon2id$v=19$m=8,t=1,p=0$c2FsdA$c2VjcmV0",
		"$argon2id$v=19$m=8,t=1,p=1$c2FsdA$", "$2a$10$secretsecret",
	} {
		keep(kept)
		_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
		w.wantKind(err, errs.Internal)
		if strings.Contains(err.Error(), kept) {
			t.Errorf("quoted: %v", err)
		}
	}
	keep(hash)
	w.mustLogin(ada, password, in.User.UUID)
}

// hostile are logins that might match an account by mistake.
var hostile = []string{
	"ada@example.com\r\nBcc: eve@example.com", "ada@example.com\n", "\rada@example.com", "ada@example.com\x00", "\x00",
	"ada\x00@example.com",
	"../../ada@example.com", "../x", "a/b", "ada@", "@", "@@", "ada", "ada@@example.com", "ada@example.com@",
	"ada @example.com", "ada@exam ple.com",
	"Ada <ada@example.com>", "<ada@example.com>", `"ada@example.com`, "ada@example.com,eve@example.com",
	"ada@example.com;eve", "ada@[127.0.0.1]",
	"ad\u0131@example.com", "ada@example.com\u202e", "\u0430da@example.com", "a\u0301da@example.com",
	"\uff41da@example.com", "ada@exa\u200dmple.com",
	"\u212aate@example.com", "\xff\xfe@example.com", "ada@\xff.com", "ada@\ufffd.com", ".ada@example.com",
	"..@example.com", "ada@-example.com", "ada@example..com",
	strings.Repeat("x", 300) + "@example.com", "ada@" + strings.Repeat("x", 300) + ".com",
	"ada@" + strings.Repeat("x.", 130) + "com", strings.Repeat("@", 300),
	"ada@example.com_email", "user:1", "' OR '1'='1", "{\"$gt\":\"\"}", "*", "ada@example.com#", "ada@example.com?x=1",
	"mailto:ada@example.com",
}

func TestHostileLoginsAreUnknown(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.MailInterval = 0 })
	w.register(ada, password)
	w.register("kate@example.com", password)
	before := len(w.objects("Tokens"))
	for _, login := range hostile {
		t.Logf("%.300q", login) // the last one of a failure
		_, err := w.Login.Login(t.Context(), credentials(login, password), from)
		w.wantKind(err, errs.NotFound)
		_, _, err = w.Registration.Register(t.Context(), credentials(login, password), from)
		w.wantKind(err, errs.Invalid)
		w.wantKind(w.Registration.ResendValidation(t.Context(), login, from), errs.Invalid)
		w.wantKind(w.Recovery.Request(t.Context(), login, from), errs.Invalid)
		c := credentials(login, "another password")
		c.Token = "token"
		w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
		_, err = w.Registration.FollowLink(t.Context(), login, "token", from)
		w.wantKind(err, errs.Denied)
	}
	if len(w.objects("Users")) != 2 || len(w.objects("Tokens")) != before {
		t.Error("something was made of a hostile login")
	}
}

// Ids that are no valid uuid are represented by a hash.
func TestUnusualAddresses(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.MailInterval = 0 })
	seen := map[string]bool{}
	for _, c := range []struct{ login, as, ident string }{
		{"o'brien@example.com", "o'brien@example.com", ""},
		{"ADA+tag@EXAMPLE.com", "ada+tag@example.com", "ada+tag@example.com_email"},
		{"ada@b\u00fccher.example", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example_email"},
		{"ada@B\u00dcCHER.example", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example_email"},
		{"ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example", "ada@xn--bcher-kva.example_email"},
		{"ada@localhost", "ada@localhost", "ada@localhost_email"},
		{"a{b}|c~!#$%&*=?^`d@example.com", "a{b}|c~!#$%&*=?^`d@example.com", ""},
		{strings.Repeat("x", 64) + "@" + strings.Repeat("y", 60) + ".com", "",
			strings.Repeat("x", 64) + "@" + strings.Repeat("y", 60) + ".com_email"},
		{strings.Repeat("x", 64) + "@" + strings.Repeat("y.", 92) + "com", "", ""},
		{"-ada@example.com", "-ada@example.com", "-ada@example.com_email"},
		{"_@example.com", "_@example.com", "_@example.com_email"},
	} {
		if c.as == "" {
			c.as = c.login
		}
		fresh := !seen[c.as]
		seen[c.as] = true
		in, _, err := w.Registration.Register(t.Context(), credentials(c.login, password), from)
		if !fresh {
			w.wantKind(err, errs.Exists)
			continue
		}
		w.must(err)
		if to := w.lastMail(c.as).To; to != c.as {
			t.Errorf("%s: a mail to %s", c.login, to)
		}
		w.mustLogin(c.login, password, in.User.UUID)
		var found []store.Stored
		for f, err := range w.set.Store("Idents").Linked(t.Context(), "user", in.User.UUID, 10) {
			w.must(err)
			found = append(found, f)
		}
		if len(found) != 1 {
			t.Fatalf("%s: %d idents", c.login, len(found))
		}
		ident := found[0].UUID
		if c.ident == "" && (len(ident) != 64+len("_email") || !strings.HasSuffix(ident, "_email")) ||
			c.ident != "" && ident != c.ident {
			t.Errorf("%s has the ident %s, want %q", c.login, ident, c.ident)
		}
		if id, _ := object.Text(object.Field(found[0].Body, "_id")); id != c.as {
			t.Errorf("%s has the id %s", c.login, id)
		}
	}
}

// An ident of another provider can have the same uuid.
func TestAnIdentOfAnotherProviderIsRejected(t *testing.T) {
	w := newFixture(t, github)
	ident := object.Object{}
	ident.Set("_id", "ada")
	ident.Set("type", "example.com_email")
	ident.Set("user", "somebody")
	_, err := w.set.Store("Idents").Save(t.Context(), ident, "ada@example.com_email")
	w.must(err)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	if len(w.recorder.of(event.Register, "Users")) > 0 {
		t.Error("somebody was registered")
	}
}
