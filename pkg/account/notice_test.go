package account_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
)

// configuredNotices configures all notices; their subjects are their kinds.
func configuredNotices(o *account.Options) {
	o.Email.Notices = map[post.Notice]*mail.Templates{}
	for _, kind := range []post.Notice{
		notices.NoticeDevice, notices.NoticePassword, notices.NoticeFactorAdded, notices.NoticeFactorRemoved,
		notices.NoticeAddress, notices.NoticeDeletion,
		notices.NoticeRecoveryCodes, notices.NoticeLoginAdded, notices.NoticeLoginRemoved, notices.NoticeKeyAdded,
		notices.NoticeKeyRemoved, notices.NoticeDisabled, notices.NoticeDeleted,
		notices.NoticeImpersonated,
	} {
		t, err := mail.ParseTemplates(string(kind), "", "{{.Login}} {{.Time}} {{.Address}} {{.Place}} {{.Device}}")
		if err != nil {
			panic(err)
		}
		o.Email.Notices[kind] = t
	}
}

// kinds delivers requested mails and returns the kinds of those to an address, without validations and recoveries.
func (w *fixture) kinds(to string) (all []string) {
	w.Helper()
	w.must(w.deliverMails())
	for _, m := range w.sender.to(to) {
		if m.kind != "validate" && m.kind != "recover" && m.kind != "code" {
			all = append(all, m.kind)
		}
	}
	return all
}

func (w *fixture) wantKinds(to string, want ...string) {
	w.Helper()
	if got := w.kinds(to); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s gets %q, want %q", to, got, want)
	}
}

func TestANewDeviceIsReported(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	if in.Device == "" {
		t.Fatal("the first device is not known")
	}
	w.wantKinds(ada)
	login := func(c sessions.Client) sessions.Issued {
		t.Helper()
		return must(w.Login.Login(t.Context(), credentials(ada, password), c))
	}
	// The same browser elsewhere, and a program that keeps no cookie.
	login(sessions.Client{Address: "198.51.100.7", UserAgent: "another/2.0", Device: in.Device})
	if again := login(from); again.Device != "" {
		t.Error("a program that is known gets a cookie at each login")
	}
	w.wantKinds(ada)
	stranger := sessions.Client{Address: "203.0.113.9", UserAgent: "stranger/1.0"}
	got := login(stranger)
	w.wantKinds(ada, "device")
	m := w.lastMail(ada)
	if !strings.Contains(m.Text, ada+" 2030-01-02 ") || m.token != "" || strings.Contains(m.Text, got.Device) {
		t.Errorf("the notice is %q", m.Text)
	}
	login(stranger)
	login(sessions.Client{Address: "203.0.113.10", UserAgent: "stranger/1.0", Device: got.Device})
	w.wantKinds(ada, "device")
	_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), sessions.Client{Address: "203.0.113.11"})
	w.wantKind(err, errs.Denied)
	w.wantKinds(ada, "device")

	// A device that was not used for a year is new again; one in use is not.
	for range 13 {
		w.clock.advance(notices.DeviceTTL / 12)
		must(w.DeleteExpired(t.Context(), 100))
		login(from)
	}
	w.wantKinds(ada, "device")
	login(stranger)
	w.wantKinds(ada, "device", "device")
	w.Close()
	if raw := w.recorder.raw.String(); strings.Contains(raw, "_devices") || strings.Contains(raw, got.Device) {
		t.Error("an event holds devices")
	}
}

func TestRecordsOfDevicesLinkNoUsers(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	w.register(bob, password)
	same := sessions.Client{Address: "198.51.100.7", UserAgent: "another/2.0", Device: in.Device}
	must(w.Login.Login(t.Context(), credentials(bob, password), same))
	hashes := map[string]int{}
	for _, o := range w.objects("Tokens") {
		for _, part := range strings.Split(string(o.Body), `"hash":"`)[1:] {
			if strings.HasPrefix(o.UUID, "devices-") {
				hashes[part[:43]]++
			}
		}
		if strings.Contains(string(o.Body), in.Device) ||
			strings.Contains(string(o.Body), from.UserAgent) && strings.HasPrefix(o.UUID, "devices-") {
			t.Errorf("%s", o.Body)
		}
	}
	for hash, n := range hashes {
		if n > 1 {
			t.Errorf("%s is in the records of two users", hash)
		}
	}
	if len(hashes) != 6 {
		t.Errorf("%d hashes", len(hashes))
	}
}

func TestNoticesAreSentOfWhatProtectsTheAccount(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	in = must(w.Recovery.ChangePassword(t.Context(), password, "a second password", with(in)))
	w.wantKinds(ada, "password")
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	c := credentials(ada, "a third password")
	c.Token = w.lastMail(ada).token
	w.must(w.Recovery.Recover(t.Context(), c, from))
	w.wantKinds(ada, "password", "password")
	must(w.Admin.SetPassword(t.Context(), in.User.UUID, "a fourth password"))
	w.wantKinds(ada, "password", "password", "password")
	for _, kind := range []post.Notice{notices.NoticeFactorAdded, notices.NoticeFactorRemoved, notices.NoticeDeletion} {
		w.Notify(t.Context(), in.User, kind)
	}
	w.wantKinds(ada, "password", "password", "password", "factorAdded", "factorRemoved", "deletion")

	// Nobody gets one who is disabled or gone, and none is sent that is not configured.
	w.Notify(t.Context(), in.User, notices.NoticeDeletion)
	must(w.Admin.SetDisabled(t.Context(), in.User.UUID, true))
	w.wantKinds(ada, "password", "password", "password", "factorAdded", "factorRemoved", "deletion", "disabled")
	quiet := newFixture(t, validatedFirst)
	in = quiet.register(ada, password)
	quiet.Notify(t.Context(), in.User, notices.NoticeDeletion)
	quiet.wantKinds(ada)
	if in.Device != "" {
		t.Error("a device is recorded without notices")
	}
}

func TestNoticesAreLimitedByKind(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	other, _ := w.newService()
	for range 2 * account.MaxNotices {
		w.Notify(t.Context(), in.User, notices.NoticeFactorAdded)
		w.must(w.deliverMails())
		other.Notify(t.Context(), in.User, notices.NoticeFactorAdded)
		w.must(w.deliverMails())
	}
	if n := len(w.kinds(ada)); n != account.MaxNotices {
		t.Errorf("%d notices", n)
	}
	w.Notify(t.Context(), in.User, notices.NoticeFactorRemoved)
	if n := len(w.kinds(ada)); n != account.MaxNotices+1 {
		t.Error("notices of one kind hide another")
	}
	w.clock.advance(account.NoticePeriod)
	w.Notify(t.Context(), in.User, notices.NoticeFactorAdded)
	if n := len(w.kinds(ada)); n != account.MaxNotices+2 {
		t.Error("no notice after the period")
	}
}

func TestANoticeThatCannotBeSentIsRetried(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	w.Notify(t.Context(), in.User, notices.NoticePassword)
	down := errors.New("down")
	w.sender.failWith(down, nil)
	w.recorder.mu.Lock()
	from := w.recorder.read
	w.recorder.mu.Unlock()
	if err := w.deliverMails(); !errors.Is(err, down) {
		t.Fatal(err)
	}
	w.sender.failWith(nil, nil)
	for range 3 { // the event is delivered again, also after it was handled
		w.recorder.mu.Lock()
		w.recorder.read = from
		w.recorder.mu.Unlock()
		w.wantKinds(ada, "password")
	}
}

func TestANoticeGoesToAnAddressOfTheUser(t *testing.T) {
	w := newFixture(t, configuredNotices)
	in := w.register(ada, password)
	w.Notify(t.Context(), in.User, notices.NoticePassword)
	w.wantKinds(ada, "password") // the only one
	in, _, err := w.Registration.Register(t.Context(), credentials(bob, password), with(in))
	w.must(err)
	w.Notify(t.Context(), in.User, notices.NoticePassword)
	w.wantKinds(ada, "password", "loginAdded") // of two that nobody has proven none
	w.wantKinds(bob)
	must(w.Registration.FollowLink(t.Context(), bob, w.lastMail(bob).token, with(in)))
	w.Notify(t.Context(), in.User, notices.NoticePassword)
	w.wantKinds(bob, "password")
	w.wantKinds(ada, "password", "loginAdded")
}
