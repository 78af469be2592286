package weak_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"belfry/pkg/account/weak"
	"belfry/test/kit"
)

func TestPasswordsThatAreEasyToGuessAreRefused(t *testing.T) {
	for password, least := range map[string]int{
		"aaaaaaaaaaaa":                 1,
		"12345678901234567890":         1,
		"passwordpasswordpassword!":    2,
		"Tr0ub4dour&3":                 3,
		"April 2019!":                  4,
		"correct horse battery staple": 5,
		"Grüße aus Köln an alle dort":  5,
		"日本語のパスワードは長いほうが良い":               5, // its first 32 bytes have ten characters, which can't get 4
		"日本語のパスワードは長いほうが良いと思うので長くした文です":   5,
		"Gr\xfc\xdfe aus K\xf6ln an alle": 5, // Latin-1
		strings.Repeat("a", 1024):         1,
	} {
		for score := range weak.MaxScore + 1 {
			want := weak.Reason("")
			if score >= least {
				want = weak.Guessable
			}
			if got := refused(t, weak.New(weak.Options{MinScore: score}), password); got != want {
				t.Errorf("%q, at least %d: %q", password, score, got)
			}
		}
	}
}

func TestAUsersOwnWordsAreGuessedFirst(t *testing.T) {
	c := weak.New(weak.Options{MinScore: 3})
	for password, own := range map[string][]string{
		"zvorkblin.quxmar@fnordia.example": {"zvorkblin.quxmar@fnordia.example"},
		"Zvorkblin1":                       {"zvorkblin.quxmar@fnordia.example"},
		"quxmarfnordia":                    {"zvorkblin_quxmar@fnordia-web.example"},
		"zvorkblin quxmar":                 {"ada@example.com", "Zvorkblin Quxmar"},
		"nilbkrovzramxuq":                  {"zvorkblin+quxmar@example.com"}, // backwards
		"zvorkblin.quxmar.the.third.of.fnordia@example.com!": {"zvorkblin.quxmar.the.third.of.fnordia@example.com"},
	} {
		if got := refused(t, c, password); got != "" {
			t.Errorf("%s of another user: %q", password, got)
		}
		if got := refusedOf(t, c, password, own...); got != weak.Guessable {
			t.Errorf("%s of %q: %q", password, own, got)
		}
	}
	// A word in a strong password does not make it weak, nor do short parts of an address.
	for _, own := range []string{"ada@example.com", "a.b-c@x.y", ""} {
		if got := refusedOf(t, weak.New(weak.Options{MinScore: 4}), "ada likes 17 umbrellas by the fjord",
			own); got != "" {
			t.Errorf("%s: %q", own, got)
		}
	}
}

// A password is estimated after the list, and before another server is asked.
func TestTheOrderOfChecks(t *testing.T) {
	r := serveRanges(t, "zvorkblin", 1)
	waited := 0
	c := weak.New(weak.Options{Common: true, MinScore: 3,
		Breaches: &weak.Breaches{URL: r.URL + "/range", Timeout: kit.Limit, MinCount: 1},
		Slot:     func(context.Context) (func(), error) { waited++; return func() {}, nil }})
	for _, step := range []struct {
		password         string
		reason           weak.Reason
		waited, requests int
	}{{"password", weak.Common, 0, 0}, {"abcabcabcabcabcabc", weak.Guessable, 1, 0},
		{"correct horse battery staple", "", 2, 1}} {
		if got := refused(t, c, step.password); got != step.reason || waited != step.waited ||
			int(r.requests.Load()) != step.requests {
			t.Errorf("%s: %q, %d estimates, %d requests", step.password, got, waited, r.requests.Load())
		}
	}
}

func TestAnEstimateTakesASlotAndReturnsIt(t *testing.T) {
	held := 0
	o := weak.Options{MinScore: 1,
		Slot: func(context.Context) (func(), error) { held++; return func() { held-- }, nil }}
	if refused(t, weak.New(o), "aaaaaaaaaaaa"); held != 0 {
		t.Errorf("%d slots are held", held)
	}
	full := errors.New("no slot")
	o.Slot = func(context.Context) (func(), error) { return nil, full }
	if r, err := weak.New(o).Check(t.Context(), "correct horse battery staple", nil); r != nil ||
		!errors.Is(err, full) {
		t.Errorf("%v, %v", r, err)
	}
	o.MinScore = 0
	if got := refused(t, weak.New(o), "aaaaaaaaaaaa"); got != "" {
		t.Errorf("without estimates: %q", got)
	}
}
