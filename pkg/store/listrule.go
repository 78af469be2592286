package store

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// ruleScope is the set of objects that the rule of lists allows, as far as it is known before an object is read.
type ruleScope uint8

const (
	allowsAll    ruleScope = iota // all objects: the rule does not depend on the object
	allowsSome                    // it is evaluated for each object
	allowsValues                  // so it is, and the ranges of the values that it allows are all that is read
	allowsNone                    // no object, so nothing is read
)

// listRule is the rule of a list, for one caller.
type listRule struct {
	scope     ruleScope
	selection *policy.Selection // what a search goes through; nil: all objects

	userValues policy.UserValues
}

// perObject reports whether the rule is evaluated for each object.
func (r *listRule) perObject() bool { return r.scope != allowsAll }

// authorize evaluates a rule that does not depend on the object. Otherwise the rule must be evaluated for each object.
func (l *lister) authorize(ctx context.Context, call Call) (ruleScope, error) {
	perObject, err := l.rules.AllowList(ctx, call.caller())
	if perObject {
		return allowsSome, nil
	}
	return allowsAll, err
}

// narrow changes the plan where the rule allows only objects that have one of a few values: only these are read, from
// the indexes of the values, and merged. The others cost nothing.
func (l *listScan) narrow(ctx context.Context) (err error) {
	of := l.lister
	if l.rule.selection, err = l.selected(ctx); err != nil {
		return err
	}
	if !l.rule.perObject() {
		return nil
	}
	if l.rule.selection != nil && l.rule.selection.None() {
		l.rule.scope = allowsNone
	}
	needs, narrow, err := of.rules.Policy().Values(ctx, policy.List, of.rules.Input(l.call.caller(), nil, nil))
	if err != nil || !narrow {
		return err
	}
	if l.plan.Searches() {
		// A search has no index of values. But a caller who may see nothing needs no search.
		if len(needs.Values) == 0 {
			l.rule.scope = allowsNone
		}
		return nil
	}
	who, _ := l.call.User.Text("uuid")
	narrowed, err := l.plan.Narrow(needs, who, of.indexes)
	if err != nil || narrowed == nil {
		return err
	}
	l.plan, l.rule.scope = narrowed, allowsValues
	return nil
}

// maxSelected is how many values a search compares those of objects with, for a rule that names any number of them.
const maxSelected = 1000

// selected returns which objects a search goes through, where the rule depends on the object; nil: all of them.
func (l *listScan) selected(ctx context.Context) (*policy.Selection, error) {
	switch {
	case !l.plan.Searches() || l.lister.searchRule == nil:
		return nil, nil
	case !l.rule.perObject():
		return &policy.Selection{Every: true}, nil
	}
	only, err := l.lister.searchRule.Select(ctx, l.lister.rules.Input(l.call.caller(), nil, nil))
	if err == nil && only.Terms() > maxSelected {
		err = errs.New(errs.Invalid,
			"q: the rule of this store allows you objects with more than %d values: too many to "+
				"search", maxSelected)
	}
	return &only, err
}

// allows reports whether the rule allows an object. Only a denial leaves an object out: any other error would make the
// page appear complete when it is not.
func (l *listScan) allows(ctx context.Context, o object.Object) (bool, error) {
	if !l.rule.perObject() {
		return true, nil
	}
	in := l.lister.rules.Input(l.call.caller(), o, nil)
	in.UserValues = &l.rule.userValues
	err := l.lister.rules.Evaluate(ctx, policy.List, in)
	if access.IsForbidden(err) {
		return false, nil
	}
	return err == nil, err
}
