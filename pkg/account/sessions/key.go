package sessions

import (
	"context"
	"sync"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

// Key is the part of a session that only an API key has. It is nil for a login.
type Key struct {
	Name string
	rule *policy.RequestRule // nil: none that can be evaluated
	open bool                // there is no rule
}

// Allows reports whether the rule of the key allows a request. A login allows any. The cost of the rule is charged to
// the budget, if it is not nil.
func (k *Key) Allows(ctx context.Context, budget *policy.Budget, method, path string) bool {
	return k == nil || k.open || k.rule.Holds(ctx, budget, method, path)
}

// RequireLogin returns Denied for the session of an API key: managing the account requires a login.
func RequireLogin(me *Session) error {
	if me == nil || me.Key == nil {
		return nil
	}
	return errs.Wrap(ErrInsufficientScope, errs.Denied, "an API key can't do this: log in")
}

// keyOf returns the key of a session; nil for the session of a login.
func (s *Sessions) keyOf(session record.Session) *Key {
	if !session.IsKey() {
		return nil
	}
	k := &Key{Name: session.Name, open: session.Rule == ""}
	if !k.open {
		k.rule = s.rules.compiled(session.Rule)
	}
	return k
}

// maxCompiled is how many compiled rules of keys are kept.
const maxCompiled = 1000

// keyRules keeps the compiled rules of keys: compiling one takes far longer than a request.
type keyRules struct {
	mu  sync.Mutex
	all map[string]*policy.RequestRule
}

// compiled returns a compiled rule; nil, which is always false, if it can't be compiled.
func (r *keyRules) compiled(expression string) *policy.RequestRule {
	r.mu.Lock()
	rule, known := r.all[expression]
	r.mu.Unlock()
	if known {
		return rule
	}
	rule, _ = policy.CompileRequestRule(expression) // nobody waits for it
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= maxCompiled || r.all == nil {
		r.all = map[string]*policy.RequestRule{}
	}
	r.all[expression] = rule
	return rule
}
