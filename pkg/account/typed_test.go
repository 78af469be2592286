package account_test

import (
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/record"
)

// asTyped are ways in which a code or a token arrives that was typed or copied. Those of codes have hyphens too, and
// other digits.
var (
	asTyped = map[string]func(string) string{
		"spaces":             func(s string) string { return "  " + s[:3] + " " + s[3:] + " " },
		"no-break spaces":    func(s string) string { return s[:3] + "\u00a0" + s[3:] + "\u202f" },
		"line breaks":        func(s string) string { return "\r\n" + s[:2] + "\n" + s[2:] + "\u2028\n" },
		"tabs":               func(s string) string { return "\t" + s + "\t" },
		"what is not seen":   func(s string) string { return "\ufeff" + s[:1] + "\u200b" + s[1:] + "\u200e\u2060" },
		"ideographic spaces": func(s string) string { return "\u3000" + s },
		"soft hyphens":       func(s string) string { return s[:3] + "\u00ad" + s[3:] },
	}
	asTypedCode = map[string]func(string) string{
		"hyphens":       func(s string) string { return s[:3] + "-" + s[3:] },
		"other hyphens": func(s string) string { return s[:2] + "\u2011" + s[2:4] + "\u2013" + s[4:] + "\u2212" },
		"full width": func(s string) string {
			return strings.Map(func(r rune) rune {
				if r == '-' {
					return r
				}
				return r - '!' + '\uff01'
			}, s)
		},
	}
	asTypedDigits = map[string]func(string) string{
		"Arabic digits": func(s string) string {
			return strings.Map(func(r rune) rune { return r - '0' + '\u0660' }, s)
		},
		"Persian digits": func(s string) string {
			return strings.Map(func(r rune) rune { return r - '0' + '\u06f0' }, s)
		},
	}
)

// typings runs a test for each way of typing.
func typings(t *testing.T, test func(t *testing.T, typed func(string) string),
	kinds ...map[string]func(string) string) {
	for _, kind := range kinds {
		for name, typed := range kind {
			t.Run(name, func(t *testing.T) { test(t, typed) })
		}
	}
}

func TestCodesOfMailsAreTakenHoweverTheyAreTyped(t *testing.T) {
	typings(t, func(t *testing.T, typed func(string) string) {
		w := newFixture(t)
		w.register(ada, password)
		code, client := w.mailedCode(ada)
		must(w.Login.LoginByMail(t.Context(), ada, typed(code), client))
	}, asTyped, asTypedCode, asTypedDigits)
}

func TestCodesOfAppsAreTakenHoweverTheyAreTyped(t *testing.T) {
	typings(t, func(t *testing.T, typed func(string) string) {
		w := newFixture(t)
		e := w.enroll(w.register(ada, password))
		must(w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(typed(w.totpCode(e.secret, 0))),
			from))
	}, asTyped, asTypedCode, asTypedDigits)
}

func TestRecoveryCodesAreTakenHoweverTheyAreTyped(t *testing.T) {
	typings(t, func(t *testing.T, typed func(string) string) {
		w := newFixture(t)
		e := w.enroll(w.register(ada, password))
		must(w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret,
			recoveryFactor(strings.ToLower(typed(e.codes[0]))), from))
		w.clock.advance(time.Minute)
		must(w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret,
			recoveryFactor(typed(strings.ReplaceAll(e.codes[1], "-", ""))), from))
	}, asTyped, asTypedCode)
}

// A token has hyphens of its own.
func TestTokensOfMailsAreTakenHoweverTheyAreTyped(t *testing.T) {
	typings(t, func(t *testing.T, typed func(string) string) {
		w := newFixture(t, validatedFirst)
		_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), from)
		w.must(err)
		c := credentials(ada, password)
		c.Token = typed(w.lastMail(ada).token)
		_, _, err = w.Registration.Register(t.Context(), c, from)
		w.must(err)

		w.clock.advance(w.email.MailInterval)
		r := w.requestRecovery(ada, "a new password")
		r.Token = typed(r.Token)
		w.must(w.Recovery.Recover(t.Context(), r, from))

		w.clock.advance(w.email.MailInterval)
		client := w.requestLogin(ada, record.MethodLink)
		must(w.Login.LoginByMail(t.Context(), ada, typed(w.lastMail(ada).token), client))
	}, asTyped)
}
