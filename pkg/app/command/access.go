// Package command is what the commands of belfry do. A command does its work with the stores open, or asks the process that holds them,
// which calls the same functions.
package command

import (
	"context"
	"encoding/json"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// Question asks whether a user may do an operation on an object.
type Question struct {
	User      string          `json:"user,omitempty"` // uuid; "": nobody is logged in
	AAL       int             `json:"aal,omitempty"`  // of the session of the user; 0: 1
	Age       time.Duration   `json:"age,omitempty"`  // since the user has last proven who they are
	Store     string          `json:"store"`
	Operation policy.Op       `json:"operation"`
	UUID      string          `json:"uuid,omitempty"`  // not for a creation
	Input     json.RawMessage `json:"input,omitempty"` // what a creation or an update sends; an object
}

func (q Question) input() (object.Object, error) {
	if len(q.Input) == 0 {
		return object.Object{}, nil
	}
	return object.Parse(q.Input)
}

// Access is the answer to a Question.
type Access struct {
	access.Explanation
	NoRoute string `json:"noRoute,omitempty"` // why HTTP does not offer the operation to anyone; "": it does
}

// Granted reports whether the user may do the operation over HTTP.
func (a *Access) Granted() bool { return a.Explanation.Granted() && a.NoRoute == "" }

// CheckAccess answers a question by the belfry that serves the stores if one does, and directly otherwise. Errors:
// Invalid; NotFound for the user or the object.
func CheckAccess(ctx context.Context, c *config.Config, q Question) (answer *Access, err error) {
	if c.Stores[q.Store] == nil {
		return nil, plan.UnknownStore(c, q.Store)
	}
	if _, err := q.input(); err != nil {
		return nil, err
	}
	err = open.WithStores(ctx, c, "access check",
		func(_ *plan.Plan, set *store.Set) (err error) {
			answer, err = Decide(ctx, c, set, q)
			return err
		},
		func(h hold.Holder) (err error) {
			answer, err = hold.Ask[Access](ctx, h, "/access", q)
			return err
		})
	return answer, err
}

// Decide answers a question about access with open stores.
func Decide(ctx context.Context, c *config.Config, set *store.Set, q Question) (*Access, error) {
	s := set.Store(q.Store)
	if s == nil {
		return nil, plan.UnknownStore(c, q.Store)
	}
	call := store.Call{Client: true, NoGet: plan.WhyNoRoute(c.Stores[q.Store], policy.Get) != ""}
	users, disabled := set.Store(c.Authentication.UserStore), false
	if q.User != "" {
		stored, err := users.GetAuthorized(ctx, q.User, policy.Get, nil) // is not announced
		if err != nil {
			return nil, err
		}
		user, err := stored.Object()
		if err != nil {
			return nil, err
		}
		if call.User, err = object.Decode(users.Rules().Visible(stored.Body)); err != nil { // as rules see who is logged in
			return nil, err
		}
		account.SetReserved(call.User, user)
		call.Session = &policy.Session{AAL: max(1, q.AAL), AuthenticatedAt: time.Now().Add(-q.Age)}
		disabled = account.IsDisabled(stored)
	}
	input, err := q.input()
	if err != nil {
		return nil, err
	}
	alone := s.WithOptions(func(o *store.Options) { o.Interceptor, o.InterceptsGet = nil, false }) // rules only
	e, err := alone.Explain(store.WithCall(ctx, call), q.Operation, q.UUID, input)
	if err != nil {
		return nil, err
	}
	e.Hide(users.Rules().Hidden, "user")
	a := &Access{Explanation: e, NoRoute: plan.WhyNoRoute(c.Stores[q.Store], q.Operation)}
	if disabled {
		a.NoRoute = "the user is disabled, and can't log in"
	}
	return a, nil
}
