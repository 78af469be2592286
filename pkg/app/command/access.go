// Package command has the work of belfry's commands. A command does its work with the stores open, or sends a request
// to the process that holds them, which calls the same functions.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/account/record"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// Question asks whether a user may do an operation on an object.
type Question struct {
	User      string          `json:"user,omitempty"` // uuid; "": nobody is logged in
	AAL       int             `json:"aal,omitempty"`  // of the session of the user; 0: 1
	Age       time.Duration   `json:"age,omitempty"`  // since the user's last authentication
	Store     string          `json:"store"`
	Operation policy.Op       `json:"operation"`
	UUID      string          `json:"uuid,omitempty"`  // not for a creation
	Input     json.RawMessage `json:"input,omitempty"` // the object that a creation or an update sends

	// Rule is one to try in place of the operation's; "" for none. Its author must not learn from it what private
	// fields have: see plan.TryRule.
	Rule string `json:"-"`
}

func (q Question) input() (object.Object, error) {
	if len(q.Input) == 0 {
		return object.Object{}, nil
	}
	return object.Parse(q.Input)
}

// Answer is the answer to a Question.
type Answer struct {
	access.Explanation
	NoRoute string `json:"noRoute,omitempty"` // why HTTP does not offer the operation to anyone; "" if it does
}

// Granted reports whether the user may do the operation over HTTP.
func (a *Answer) Granted() bool { return a.Explanation.Granted() && a.NoRoute == "" }

// Access answers a Question. Errors: Invalid; NotFound for the user or the object.
var Access = Operation[Question, Answer, none]{
	Name: "access check", Max: 4 << 20,
	Check: func(c *config.Config, q Question) error {
		if c.Stores[q.Store] == nil {
			return plan.UnknownStore(c, q.Store)
		}
		_, err := q.input()
		return err
	},
	Run: func(ctx context.Context, at *Place, q Question, _ func(none)) (*Answer, error) {
		return Decide(ctx, at.Plan.Config, at.Set, q)
	},
	Commands: []Command[Question, Answer]{{
		Words: "access check",
		Help:  "Explain whether a user may do something with an object: the rule, its values, its result.",
		Flags: &accessFlags{},
	}},
}

// Decide answers a question about access with open stores. It writes nothing. Errors: those of Access.
func Decide(ctx context.Context, c *config.Config, set *store.Set, q Question) (*Answer, error) {
	s := set.Store(q.Store)
	if s == nil {
		return nil, plan.UnknownStore(c, q.Store)
	}
	call := store.Call{Client: true, NoGet: plan.WhyNoRoute(c.Stores[q.Store], policy.Get) != ""}
	users, disabled := set.Store(c.Authentication.UserStore), false
	if q.User != "" {
		stored, err := users.GetAuthorized(ctx, q.User, policy.Get, nil) // is not published as an event
		if errors.Is(err, errs.NotFound) {
			return nil, errs.New(errs.NotFound, "there is no user %q: expected the uuid of a user; `belfry user list` "+
				"shows them", q.User)
		}
		if err != nil {
			return nil, err
		}
		user, err := stored.Object()
		if err != nil {
			return nil, err
		}
		// As rules see the logged-in user.
		if call.User, err = object.Decode(users.Rules().Visible(stored.Body)); err != nil {
			return nil, err
		}
		record.SetReserved(call.User, user)
		call.Session = &policy.Session{AAL: max(1, q.AAL), AuthenticatedAt: time.Now().Add(-q.Age)}
		disabled = record.IsDisabled(stored)
	}
	input, err := q.input()
	if err != nil {
		return nil, err
	}
	tried, err := tryRule(c, q)
	if err != nil {
		return nil, err
	}
	alone := s.WithOptions(func(o *store.Options) {
		o.Interceptor, o.InterceptsGet = nil, false // rules only
		if tried != nil {
			o.Policy = tried
		}
	})
	e, err := alone.Explain(store.WithCall(ctx, call), q.Operation, q.UUID, input)
	if err != nil {
		return nil, err
	}
	e.Hide(users.Rules().Hidden, "user")
	a := &Answer{Explanation: e, NoRoute: plan.WhyNoRoute(c.Stores[q.Store], q.Operation)}
	if disabled {
		a.NoRoute = "the user is disabled, and can't log in"
	}
	return a, nil
}

// tryRule returns the policy with the rule to try; nil without one.
func tryRule(c *config.Config, q Question) (*policy.Policy, error) {
	if strings.TrimSpace(q.Rule) == "" {
		return nil, nil
	}
	return plan.TryRule(c, c.Stores[q.Store], q.Operation, q.Rule)
}
