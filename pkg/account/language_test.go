package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/texts"
)

// translated adds texts in German and French to all mails, whose subjects begin with the language.
func translated(o *account.Options) {
	all := []*mail.Templates{o.Email.Validation, o.Email.Recovery, o.Email.Taken, o.Email.Change, o.Email.Undo,
		o.Email.Login.CodeMail, o.Email.Login.LinkMail}
	for _, n := range o.Email.Notices {
		all = append(all, n)
	}
	for _, tag := range []string{"de", "fr"} {
		for _, t := range all {
			in, err := mail.ParseTemplates(tag+" {{.Name}}", "", "{{.Login}} {{.Link}} {{.Token}} {{.Time}} {{.Device}}")
			if err != nil {
				panic(err)
			}
			t.Add(tag, in)
		}
	}
	o.Email.Name = "Kitchen"
}

// A mail that somebody asks for is in the language of their browser. A notice, and the mail that undoes a change, are in
// that of the account's owner, which a thief does not choose.
func TestMailsAreInTheLanguageOfTheirReaders(t *testing.T) {
	w := newFixture(t, configuredNotices, translated)
	own := sessions.Client{Address: "192.0.2.1", UserAgent: "laptop/1.0", Language: "de"}
	german, french := texts.WithLanguage(w.Context(), "de"), texts.WithLanguage(w.Context(), "fr")
	in, _, err := w.Registration.Register(german, credentials(ada, password), own)
	w.must(err)
	last := func(to, want string) {
		t.Helper()
		w.must(w.deliverMails())
		if all := w.sender.to(to); len(all) == 0 || all[len(all)-1].Subject != want {
			t.Errorf("the last mail is %+v, want %q", all, want)
		}
	}
	last(ada, "de Kitchen")

	thief := sessions.Client{Address: "203.0.113.9", UserAgent: "stranger/1.0", Language: "fr"}
	first := must(w.Login.Login(french, credentials(ada, password), thief))
	last(ada, "de Kitchen") // a new device
	thief.Device = first.Device
	again := must(w.Login.Login(french, credentials(ada, password), thief))
	thief.Session = &again.Session
	set := must(w.Recovery.ChangePassword(french, password, "another password", thief))
	last(ada, "de Kitchen") // the password
	thief.Session = &set.Session
	w.must(w.Addresses.Request(french, adaIdent, "eve@example.com", "another password", thief))
	last(ada, "de Kitchen") // the mail that undoes the change
	last("eve@example.com", "fr Kitchen")

	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(french, ada, thief))
	last(ada, "fr Kitchen")

	// The owner's browser asks for another language from now on.
	own.Device, own.Language = in.Device, "fr"
	must(w.Login.Login(w.Context(), credentials(ada, "another password"), own))
	other := sessions.Client{Address: "198.51.100.1", UserAgent: "other/1.0", Language: "de"}
	must(w.Login.Login(german, credentials(ada, "another password"), other))
	last(ada, "fr Kitchen")
}

// A notice names the device in the language of its reader.
func TestANoticeNamesTheDeviceInItsLanguage(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	w := newFixture(t, configuredNotices, translated)
	own := sessions.Client{Address: "192.0.2.1", UserAgent: firefox, Language: "de"}
	in, _, err := w.Registration.Register(w.Context(), credentials(ada, password), own)
	w.must(err)
	own.Session = &in.Session
	call := store.Call{Origin: event.OriginHTTP, Ctx: event.Ctx{Address: own.Address, UserAgent: firefox}}
	must(w.Recovery.ChangePassword(store.WithCall(t.Context(), call), password, "another password", own))
	if m := w.lastMail(ada); m.Subject != "de Kitchen" || !strings.HasSuffix(m.Text, "Firefox unter Linux") {
		t.Errorf("%+v", m)
	}
}

// The login of an owner may have named no language, as a program does, or before languages were kept. Then a thief's
// does not count either.
func TestAThiefChoosesNoLanguageForAnOwnerWithoutOne(t *testing.T) {
	w := newFixture(t, configuredNotices, translated)
	own := sessions.Client{Address: "192.0.2.1", UserAgent: "curl/8"}
	_, _, err := w.Registration.Register(w.Context(), credentials(ada, password), own)
	w.must(err)
	thief := sessions.Client{Address: "203.0.113.9", UserAgent: "stranger/1.0", Language: "fr"}
	must(w.Login.Login(texts.WithLanguage(w.Context(), "fr"), credentials(ada, password), thief))
	w.must(w.deliverMails())
	if all := w.sender.to(ada); len(all) < 2 || strings.HasPrefix(all[len(all)-1].Subject, "fr ") {
		t.Errorf("%+v", all)
	}
}
