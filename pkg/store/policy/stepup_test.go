package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// What a rule demands of the session is named where it is all that is missing, and to who can bring it.
func TestStepUpIsNamedWhereItHelps(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	ada := object.Object{"uuid": []byte(`"ada"`)}
	const strong, recent, both = `session.aal == 2`, `now - session.authenticatedAt < duration('10m')`,
		`session.aal == 2 && now - session.authenticatedAt < duration('10m')`
	weakOld := &policy.Session{AAL: 1, AuthenticatedAt: now.Add(-time.Hour), StepUp: true}
	strongOld := &policy.Session{AAL: 2, AuthenticatedAt: now.Add(-time.Hour), StepUp: true}
	key := &policy.Session{AAL: 1}
	for _, c := range []struct {
		rule    string
		session *policy.Session
		object  string
		want    string // a step, "denied", "anonymous" or "" for allowed
	}{
		{strong, weakOld, "", errs.StepSecondFactor},
		{strong, strongOld, "", ""},
		{recent, weakOld, "", errs.StepReauthenticate},
		{recent, &policy.Session{AAL: 1, AuthenticatedAt: now.Add(-time.Minute), StepUp: true}, "", ""},
		{both, weakOld, "", errs.StepSecondFactor},
		{both, strongOld, "", errs.StepReauthenticate},
		{both + ` && object.user == user.uuid`, weakOld, `{"user":"bob"}`, "denied"},
		{both + ` && object.user == user.uuid`, weakOld, `{"user":"ada"}`, errs.StepSecondFactor},
		{both, key, "", "denied"},
		{both, nil, "", "anonymous"},
		{`session == null || session.aal == 2`, nil, "", ""},
		{`user.uuid == "bob"`, weakOld, "", "denied"},
	} {
		p, problems := policy.Compile(policy.Rules{Get: c.rule})
		if problems != nil {
			t.Fatal(problems)
		}
		in := policy.Input{User: ada, Session: c.session, Now: now}
		if c.session == nil {
			in.User = nil
		}
		if c.object != "" {
			in.Object, _ = object.Decode([]byte(c.object))
		}
		got := outcome(p.Allow(t.Context(), policy.Get, in))
		if got != c.want {
			t.Errorf("%s with %+v: %q, want %q", c.rule, c.session, got, c.want)
		}
		in.Object = ada
		if got := outcome(p.Allow(t.Context(), policy.List, in)); got == errs.StepSecondFactor ||
			got == errs.StepReauthenticate {
			t.Errorf("%s with %+v: a list names the step %s for an object that it leaves out", c.rule, c.session, got)
		}
	}
}

func outcome(err error) string {
	var step *errs.StepUp
	var denial *policy.Denial
	switch {
	case err == nil:
		return ""
	case errors.As(err, &step) && errors.Is(err, errs.Unauthenticated) && errors.As(err, &denial):
		return step.Step
	case errors.Is(err, errs.Unauthenticated):
		return "anonymous"
	case errors.Is(err, errs.Denied):
		return "denied"
	}
	return err.Error()
}

func TestARuleNamesFieldsThatASessionHas(t *testing.T) {
	_, problems := policy.Compile(policy.Rules{Get: `user != null && session.all == 2`})
	if len(problems) != 1 || problems[0].Column < 20 ||
		!strings.Contains(problems[0].Message, "a session has no field all; it has aal and authenticatedAt") {
		t.Errorf("%+v", problems)
	}
}
