package policy_test

import (
	"errors"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

// The rules of one request share a budget: each evaluation below ends at its own limit.
func TestTheRulesOfARequestShareABudget(t *testing.T) {
	p := compile(t, policy.Rules{Create: "input.l.all(a, !(2 in input.l))", Get: "object.uuid == 'a'"})
	in := policy.Input{Input: hostile(t), Object: hostile(t), Budget: policy.NewBudget()}
	denied := 0
	var err error
	for err = p.Allow(t.Context(), policy.Create, in); errors.Is(err, errs.Unauthenticated) && denied < 100; denied++ {
		err = p.Allow(t.Context(), policy.Create, in)
	}
	if !errors.Is(err, policy.ErrBudget) || !errors.Is(err, errs.Limited) || denied < 1 || denied > 4 {
		t.Fatalf("after %d evaluations: %v", denied, err)
	}
	if err := p.Allow(t.Context(), policy.Get, in); !errors.Is(err, policy.ErrBudget) {
		t.Errorf("another rule of the same request: %v", err)
	}
	in.Budget = nil
	if err := p.Allow(t.Context(), policy.Create, in); !errors.Is(err, errs.Unauthenticated) {
		t.Errorf("without a budget: %v", err)
	}
}

func TestOrdinaryRulesFitIntoTheBudgetOfARequest(t *testing.T) {
	p := compile(t, policy.Rules{List: "user != null && (object.owner == user.uuid || user.uuid in object.members)"})
	in := policy.Input{User: parse(t, `{"uuid":"u"}`), Object: parse(t, `{"owner":"x","members":["a","b","c","u"]}`),
		Budget: policy.NewBudget()}
	for i := range 10_000 {
		if err := p.Allow(t.Context(), policy.List, in); err != nil {
			t.Fatalf("object %d: %v", i, err)
		}
	}
}
