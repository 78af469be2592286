package passwords

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/secure/precis"
)

// What the profile OpaqueString takes has the form that it gives it. What it refuses is not refused here.
func TestPasswordsHaveTheFormOfRFC8265(t *testing.T) {
	for _, password := range []string{
		"a fine password", "caf\u00e9 noir", "cafe\u0301 noir", "a\u00a0b\u2003c\u3000d", "\u1112\u1161\u11ab\uac00",
		"\u212bngstr\u00f6m", "\ufb01ne \uff41", "\u0958\u0915\u093c",
		"\U0001f600\U0001f600", "q\u0323\u0307 q\u0307\u0323", "\u03a9\u2126", "A" + strings.Repeat("\u0301", 40),
		"correct horse battery staple",
	} {
		want, err := precis.OpaqueString.String(password)
		if err != nil {
			want = PasswordForm(password) // old Hangul jamo, for instance
		}
		form := PasswordForm(password)
		if form != want {
			t.Errorf("%+q has the form %+q, want %+q", password, form, want)
		}
		if again := PasswordForm(form); again != form {
			t.Errorf("%+q: the form %+q has another one, %+q", password, form, again)
		}
	}
	for _, password := range []string{"joined \U0001f468\u200d\U0001f469\u200d\U0001f467", "tab\tand NUL\x00",
		"\U0001fae9 newer than the tables", "\xff\xfe no UTF-8"} {
		if form := PasswordForm(password); form != password {
			t.Errorf("%+q has the form %+q", password, form)
		}
	}
	if PasswordForm("\xff\xff") == PasswordForm("\xfe\xff") {
		t.Error("two passwords that are no text have one form")
	}
}

func TestFormsOfPasswords(t *testing.T) {
	nfc, nfd := strings.Repeat("\u00e9", 400), strings.Repeat("e\u0301", 400) // 800 and 1200 bytes
	grows := strings.Repeat("\u0958", 300)                                    // 900 bytes, and 1800 in NFC
	for name, test := range map[string]struct {
		password string
		want     []string
	}{
		"of one form":    {"a fine password", []string{"a fine password"}},
		"empty":          {"", []string{""}},
		"of another":     {"cafe\u0301", []string{"caf\u00e9", "cafe\u0301"}},
		"long as sent":   {nfd, []string{nfc}},
		"long in NFC":    {grows, []string{PasswordForm(grows), grows}},
		"too long":       {strings.Repeat("x", MaxPassword+1), []string{""}},
		"of no language": {"\xffpassword", []string{"\xffpassword"}},
	} {
		if got := passwordForms(test.password); !slices.Equal(got, test.want) {
			t.Errorf("%s: %+q, want %+q", name, got, test.want)
		}
	}
}
