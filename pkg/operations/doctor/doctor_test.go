package doctor_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/operations/doctor"
)

func found(level doctor.Level, name string) func(context.Context) []doctor.Finding {
	return func(context.Context) []doctor.Finding { return []doctor.Finding{{Level: level, Name: name}} }
}

func namesOf(all []doctor.Finding) (names []string) {
	for _, f := range all {
		names = append(names, f.Name)
	}
	return names
}

// What was found has the order of the checks, and the area of its check unless it names another.
func TestAReportHasAllThatWasFound(t *testing.T) {
	r := doctor.Run(t.Context(), []doctor.Check{
		{Area: "disk", Subject: "data", Ask: found(doctor.OK, "a")},
		{Area: "bus", Ask: func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Level: doctor.Warning, Name: "b"},
				{Level: doctor.Problem, Area: "clock", Name: "c"}, {Level: doctor.Unseen, Name: "d"}}
		}},
		{Area: "mail", Ask: func(context.Context) []doctor.Finding { return nil }},
	}, time.Minute)
	if got := namesOf(r.Findings); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("found %v", got)
	}
	if got := namesOf(r.Urgent()); !slices.Equal(got, []string{"c", "b", "d", "a"}) {
		t.Errorf("by urgency %v", got)
	}
	if r.Findings[0].Area != "disk" || r.Findings[0].Subject != "data" || r.Findings[1].Area != "bus" ||
		r.Findings[2].Area != "clock" {
		t.Errorf("found %+v", r.Findings)
	}
	if r.Healthy() || r.Count(doctor.Problem) != 1 {
		t.Error("a problem is not counted")
	}
}

// A check that ignores its context is named, and what others found is not lost.
func TestACheckThatHangsIsNamed(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	r := doctor.Run(t.Context(), []doctor.Check{
		{Area: "backend", Subject: "default", Ask: func(context.Context) []doctor.Finding { <-hangs; return nil }},
		{Area: "bus", Ask: found(doctor.OK, "bus.ok")},
		{Area: "mail", Ask: func(ctx context.Context) []doctor.Finding {
			<-ctx.Done() // it ends with its time, and still has its say
			return []doctor.Finding{{Level: doctor.Problem, Name: "mail.slow"}}
		}},
	}, time.Millisecond)
	if got := namesOf(r.Findings); !slices.Equal(got, []string{"backend.noReply", "bus.ok", "mail.slow"}) {
		t.Errorf("found %v", got)
	}
	if f := r.Findings[0]; f.Subject != "default" || f.Level != doctor.Problem || f.Do == "" {
		t.Errorf("found %+v", f)
	}
}

// A server may repeat what it was sent, in any form in which it was written.
func TestNoReportHasASecret(t *testing.T) {
	secrets := []string{"s3cret pass/word\n", "s3cret pass/word and more", "mongodb://ada:h%40rd%2Fone@db.example/x",
		"ab", ""}
	texts := map[string]bool{ // those that stay
		"535 login as x with s3cret pass/word failed":              false,
		"two: s3cret pass/word and more, s3cret pass/word":         false,
		"encoded: s3cret+pass%2Fword":                              false,
		"can't connect to mongodb://ada:h%40rd%2Fone@db.example/x": false,
		"the server says h@rd/one is wrong":                        false,
		"ab is in every other word, as in about":                   true,
	}
	r := &doctor.Report{}
	var want []string
	for text := range texts {
		want = append(want, text)
		r.Findings = append(r.Findings, doctor.Finding{Subject: text, Says: text, Do: text})
	}
	r.Redact(secrets)
	for i, f := range r.Findings {
		for _, got := range []string{f.Subject, f.Says, f.Do} {
			if same := got == want[i]; same != texts[want[i]] {
				t.Errorf("%q became %q", want[i], got)
			}
			for _, secret := range []string{"pass/word", "h@rd", "h%40rd", "pass%2Fword", "and more"} {
				if strings.Contains(got, secret) {
					t.Errorf("%q is in %q", secret, got)
				}
			}
		}
	}
}
