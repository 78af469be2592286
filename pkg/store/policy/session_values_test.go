package policy_test

import (
	"testing"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// A list reads what its rule allows the session, and nothing where the session is not enough.
func TestValuesOfARuleAboutTheSession(t *testing.T) {
	p, problems := policy.Compile(policy.Rules{List: `session.aal == 2 && isOwner`, OwnerField: "user"})
	if problems != nil {
		t.Fatal(problems)
	}
	ada := object.Object{"uuid": []byte(`"ada"`)}
	for aal, want := range map[int]int{1: 0, 2: 1} {
		needs, narrow, err := p.Values(t.Context(), policy.List,
			policy.Input{User: ada, Session: &policy.Session{AAL: aal}, Now: time.Now()})
		if err != nil || !narrow || len(needs.Values) != want {
			t.Errorf("aal %d: %+v, %v, %v; want %d values", aal, needs, narrow, err, want)
		}
	}
}
