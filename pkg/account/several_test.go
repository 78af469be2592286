package account_test

import (
	"testing"

	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
)

// Browsers send several cookies of one name. The first valid one counts, whichever of them that is, and none of the
// others.
func TestOfSeveralSecretsTheValidOneCounts(t *testing.T) {
	w := newFixture(t, configuredNotices)
	in := w.register(ada, password)
	e := w.enroll(in)
	service := func(of func(secrets []string) string, own string) {
		t.Helper()
		others := []string{once.NewBrowser(), once.NewBrowser()}
		for _, secrets := range [][]string{{own}, {own, others[0]}, {others[0], own}, {others[0], others[1], own}} {
			if got := of(secrets); got != own {
				t.Errorf("of %d secrets %q counts", len(secrets), got)
			}
		}
		if got := of(others); got != others[0] {
			t.Errorf("of none that is valid %q counts", got)
		}
		if of(nil) != "" {
			t.Error("there is none")
		}
	}
	waits := func(secrets []string) string { return w.Login.PendingSecret(t.Context(), secrets) }
	pending := w.beginLogin(ada).Secret
	service(waits, pending)
	_, err := w.Login.CompleteLogin(t.Context(), pending, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	service(waits, pending)
	code, client := w.mailedCode(ada)
	binding := func(secrets []string) string { return w.Mails.BindingSecret(t.Context(), ada, secrets) }
	service(binding, client.Binding)
	_, err = w.Login.LoginByMail(t.Context(), ada, code, client)
	w.must(err)
	service(binding, client.Binding) // it is known for a while that it was used
}

func TestOfSeveralDevicesTheKnownOneCounts(t *testing.T) {
	w := newFixture(t, configuredNotices)
	in := w.register(ada, password)
	c := sessions.Client{Address: "198.51.100.7", UserAgent: "another/2.0", Device: once.NewBrowser(),
		Devices: []string{once.NewBrowser(), in.Device}}
	if again := must(w.Login.Login(t.Context(), credentials(ada, password), c)); again.Device != "" {
		t.Error("a device that is known gets another cookie")
	}
	w.wantKinds(ada)
	c = sessions.Client{Address: "203.0.113.9", UserAgent: "stranger/1.0", Device: once.NewBrowser(),
		Devices: []string{once.NewBrowser()}}
	if got := must(w.Login.Login(t.Context(), credentials(ada, password), c)); got.Device != c.Device {
		t.Error("a new device does not get the first cookie")
	}
	w.wantKinds(ada, "device")
}

func TestOfSeveralBrowsersTheKnownOneCounts(t *testing.T) {
	w, c := newFixture(t, validatedFirst), known()
	form := w.registeredByToken(c)
	again := known()
	_, _, err := w.Registration.Register(t.Context(), form, again)
	w.wantRepeated(err, record.ActRegistered, false)
	again.Browsers = []string{once.NewBrowser(), c.Browser}
	_, _, err = w.Registration.Register(t.Context(), form, again)
	w.wantRepeated(err, record.ActRegistered, true)
}
