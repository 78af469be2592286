package weak_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"belfry/pkg/account/weak"
)

func refused(t *testing.T, c *weak.Checker, password string) weak.Reason {
	t.Helper()
	return refusedOf(t, c, password)
}

// refusedOf returns why a password of a user with some texts of their own is refused; "" if it is not.
func refusedOf(t *testing.T, c *weak.Checker, password string, own ...string) weak.Reason {
	t.Helper()
	r, err := c.Check(t.Context(), password, own)
	if err != nil {
		t.Fatal(err)
	}
	if r == nil {
		return ""
	}
	if r.Message == "" || password != "password" && strings.Contains(r.Message, password) {
		t.Errorf("message %q", r.Message)
	}
	return r.Reason
}

func TestCommonPasswordsAreRefusedInAnyCase(t *testing.T) {
	c := weak.New(weak.Options{Common: true})
	for _, password := range []string{"password", "PASSWORD", "Password123", "12345678", "iloveyou", "Qwertyuiop",
		"football", "trustno1", "1qaz2wsx", "passwordpassword"} {
		if got := refused(t, c, password); got != weak.Common {
			t.Errorf("%s: %q", password, got)
		}
	}
	for _, password := range []string{
		"correct horse", "a fine password", "the password of bob", "Grüße aus Köln", "日本語のパスワード",
		"passwordpasswordpassword!",
		" password", "password\x00", "pass\x00word", "\xff\xfepassword", strings.Repeat("a", 1024),
		strings.Repeat("\xff", 1024),
	} {
		if got := refused(t, c, password); got != "" {
			t.Errorf("%q: %q", password, got)
		}
	}
	if got := refused(t, weak.New(weak.Options{}), "password"); got != "" {
		t.Errorf("without the list: %q", got)
	}
}

// The seed is fixed, so this is the same for every run.
func TestOneInAMillionOtherPasswordsIsTakenForACommonOne(t *testing.T) {
	c := weak.New(weak.Options{Common: true})
	random := rand.New(rand.NewPCG(1, 2))
	wrong := 0
	for range 1_000_000 {
		if refused(t, c, fmt.Sprintf("%016x!", random.Uint64())) != "" {
			wrong++
		}
	}
	if wrong > 5 {
		t.Errorf("%d in a million", wrong)
	}
}

func BenchmarkACommonPassword(b *testing.B) {
	c := weak.New(weak.Options{Common: true})
	for b.Loop() {
		_, _ = c.Check(b.Context(), "correct horse battery", nil)
	}
}
