// Package policy decides who may do what with an object, by CEL expressions
// over the caller, the stored object and the incoming one.
package policy

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// Op is an operation that a rule can be about.
type Op string

// The operations.
const (
	Create Op = "create"
	Get    Op = "get"
	Update Op = "update"
	Delete Op = "delete"
	List   Op = "list"
)

// Rules are a store's rules as they are configured; "" is none. With Owner,
// an operation without an expression of its own follows the owner's rules:
// whoever is logged in may create, and the field user becomes their uuid; the
// owner (the object's user or uuid is theirs) may get, update and delete; anyone
// may get where the field public is true.
type Rules struct {
	Owner                             bool
	Create, Get, Update, Delete, List string
}

// Input is what a rule sees.
type Input struct {
	User   object.Object // who is logged in; nil for nobody
	Object object.Object // as stored; nil when there is none
	Input  object.Object // as it comes in; nil when nothing does
	Now    time.Time
}

// Policy is compiled rules. It is safe for concurrent use.
type Policy struct {
	owner bool
	rules map[Op]*rule // those with an expression
}

// Open reports whether everyone may do an operation.
func (p *Policy) Open(op Op) bool { return !p.owner && p.ruleFor(op) == nil }

// NeedsObject reports whether the rule of an operation is about the stored
// object.
func (p *Policy) NeedsObject(op Op) bool {
	if r := p.ruleFor(op); r != nil {
		return r.object
	}
	return p.owner && op != Create
}

// of is the rule of an operation. A list shows objects, so without a rule of
// its own it falls under that of get.
func (p *Policy) ruleFor(op Op) *rule {
	if r := p.rules[op]; r != nil || op != List {
		return r
	}
	return p.rules[Get]
}

// Allow returns nil when a rule allows an operation, else errs.Unauthenticated
// when nobody is logged in and errs.Denied otherwise. A rule that can't be
// evaluated (a field is missing, a type does not fit) denies.
func (p *Policy) Allow(ctx context.Context, op Op, in Input) error {
	if r := p.ruleFor(op); r != nil {
		allowed, err := r.allows(ctx, in)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			slog.DebugContext(ctx, "a policy's rule can't be evaluated, which denies", "operation", op, "error", withoutValues(err))
		}
		return denied(allowed, op, in)
	}
	return denied(!p.owner || owns(op, in), op, in)
}

// withoutValues is the message of an evaluation's error up to what it quotes:
// a value that could not be converted, which may be anyone's secret.
func withoutValues(err error) string {
	message, _, _ := strings.Cut(err.Error(), `"`)
	return message
}

func denied(allowed bool, op Op, in Input) error {
	switch {
	case allowed:
		return nil
	case in.User == nil:
		return errs.New(errs.Unauthenticated, "the store's policy does not allow %s to whoever is not logged in", op)
	default:
		return errs.New(errs.Denied, "the store's policy does not allow you to %s this", op)
	}
}

// owns judges by the owner's rules.
func owns(op Op, in Input) bool {
	if (op == Get || op == List) && string(in.Object["public"]) == "true" {
		return true
	}
	me, ok := in.User.Text("uuid")
	if !ok || me == "" {
		return false
	}
	if op == Create {
		return true
	}
	for _, field := range [...]string{"user", "uuid"} {
		if theirs, ok := in.Object.Text(field); ok && theirs == me {
			return true
		}
	}
	return false
}

// Stamp sets in an incoming object what the owner's rules say of its owner,
// whatever the client sent: at creation it is the caller, and no update gives
// an object away.
func (p *Policy) SetOwner(op Op, user, input object.Object) {
	if !p.owner {
		return
	}
	delete(input, "user")
	if op == Create && user["uuid"] != nil {
		input["user"] = user["uuid"]
	}
}
