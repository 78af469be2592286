// Package policy authorizes operations on objects by CEL expressions over the
// caller, the stored object and the incoming one.
package policy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
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

// Rules are a store's rules as configured; "" is no rule.
type Rules struct {
	Create, Get, Update, Delete, List string

	// Owner lets an operation without an expression of its own follow the owner's rules: every user who is logged
	// in may create, the owner may get, update and delete, and anyone may get an object whose field public is true.
	Owner bool
	// OwnerField is the field that holds the uuid of the user to whom an object belongs; "": objects have no owner,
	// or with Owner the field user. Only this field determines the owner.
	OwnerField string
	// Users says that the objects are the users: each is its own owner, and there is no owner field.
	Users bool
	// References are the fields that name objects, which rules read as linked.
	References []string
}

// Input is the input of a rule.
type Input struct {
	User    object.Object // the logged-in user; may be nil
	Session *Session      // theirs; may be nil
	Object  object.Object // as stored; may be nil
	Input   object.Object // the incoming object; may be nil
	Now     time.Time
	Budget  *Budget // of the request; nil: no limit

	Links Links  // of linked; nil: references name nothing
	After *After // of a creation and an update, whose references linked follows; nil: they name nothing

	UserValues *UserValues // of User and Session, for several objects; may be nil
}

// Policy is compiled rules. It is safe for concurrent use.
type Policy struct {
	ownersRules bool
	owner       string       // the field with the owner's uuid; "" for none
	references  []string     // the fields that name objects
	rules       map[Op]*rule // those with an expression
}

// Owner is the field that holds the uuid of the user to whom an object belongs; "" for none. The uuid of a user
// is that of its owner.
func (p *Policy) Owner() string { return p.owner }

// Open reports whether everyone may do an operation.
func (p *Policy) Open(op Op) bool { return !p.ownersRules && p.ruleFor(op) == nil }

// ListsApart reports whether lists have a rule of their own, so that another caller
// than one who may get an object may list it.
func (p *Policy) ListsApart() bool { return p.rules[List] != nil }

// NeedsObject reports whether the rule of an operation depends on the stored
// object.
func (p *Policy) NeedsObject(op Op) bool {
	if r := p.ruleFor(op); r != nil {
		return op != Create && r.dependsOnObject() || r.object
	}
	return p.ownersRules && op != Create
}

// ruleFor is the rule of an operation.
func (p *Policy) ruleFor(op Op) *rule { return p.rules[p.ruleOp(op)] }

// ruleOp is the operation whose rule an operation has. A list without a rule of its
// own has that of get, since it returns objects.
func (p *Policy) ruleOp(op Op) Op {
	if op == List && p.rules[List] == nil {
		return Get
	}
	return op
}

// Allow returns nil if a rule allows an operation. Its errors are:
//
//	errs.Unauthenticated   no user is logged in; or, with an errs.StepUp, the rule would hold if the user proved
//	                       their identity again
//	errs.Denied            the rule denies, or can't be evaluated: a field is missing, a type does not fit, the
//	                       cost limit is exceeded
//	errs.Limited           with ErrBudget: the budget of the request is spent
//	errs.Unavailable       a linked object can't be read, and the evaluation needs it
//	that of After.Refused  the write will be refused because of a linked object, and the evaluation needs that
//
// The first two wrap a Denial. When ctx has ended, Allow returns its error.
func (p *Policy) Allow(ctx context.Context, op Op, in Input) error {
	r := p.ruleFor(op)
	if r == nil {
		if !p.ownersRules || p.allowsOwner(op, in) {
			return nil
		}
		return denied(op, in, &Denial{Op: p.ruleOp(op)})
	}
	denial, err := p.evaluate(ctx, r, op, in)
	if err != nil || denial == nil {
		return err
	}
	denial.Op = p.ruleOp(op)
	if step, err := p.missingStep(ctx, r, op, in); step != nil || err != nil {
		return stepUp(op, step, denial, err)
	}
	return denied(op, in, denial)
}

// evaluate evaluates a rule. Without a denial it holds; an error is that of an ended context, a spent budget or an
// object that can't be read.
func (p *Policy) evaluate(ctx context.Context, r *rule, op Op, in Input) (*Denial, error) {
	holds, err := r.allows(ctx, op, in, r.isOwner && p.isOwner(op, in))
	var unread *unreadError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &unread):
		return nil, unread.error
	case errors.Is(err, ErrBudget):
		return nil, err
	case err != nil:
		return &Denial{Expression: r.expression, Reason: r.reason(err)}, nil
	case !holds:
		return &Denial{Expression: r.expression}, nil
	}
	return nil, nil
}

// Denial is the cause of an error of Allow: the rule that denies. It is for callers that
// configure the store.
type Denial struct {
	Op         Op     // whose rule it is: a list may have that of get
	Expression string // "" for the owner's rules
	Reason     string // why it could not be evaluated, without values of objects; "": it is false
}

func (d *Denial) Error() string {
	rule := "the owner's rules"
	if d.Expression != "" {
		rule = fmt.Sprintf("the rule of %s, %s", d.Op, d.Expression)
	}
	if d.Reason == "" {
		return rule + ": false"
	}
	return rule + ": " + d.Reason
}

// reason returns the message of an evaluation error without values of objects,
// which may be secrets: up to the first quotation mark, and without a key that the
// rule does not name itself.
func (r *rule) reason(err error) string {
	message, _, _ := strings.Cut(err.Error(), `"`)
	if text, key, found := strings.Cut(message, "no such key: "); found && !strings.Contains(r.expression, key) {
		message = text + "no such key"
	}
	return strings.TrimSpace(message)
}

func denied(op Op, in Input, cause *Denial) error {
	e := errs.New(errs.Denied, "the store's policy does not allow you to %s this", op)
	if in.User == nil {
		e = errs.New(errs.Unauthenticated,
			"the store's policy does not allow %s without logging in; a login helps only "+
				"if its rule allows your user", op)
	}
	e.Err = cause
	return e
}

// allowsOwner evaluates the owner's rules.
func (p *Policy) allowsOwner(op Op, in Input) bool {
	return (op == Get || op == List) && string(in.Object["public"]) == "true" || p.isOwner(op, in)
}

// isOwner reports whether the object belongs to the logged-in user. An object that they create
// will.
func (p *Policy) isOwner(op Op, in Input) bool {
	me, ok := in.User.Text("uuid")
	if !ok || me == "" {
		return false
	}
	if op == Create {
		return true
	}
	theirs, ok := in.Object.Text(p.owner)
	return ok && theirs == me
}

// Messages of the parser of CEL that say little about the error.
var (
	reservedWord = regexp.MustCompile(
		`^reserved identifier: (\w+)$|no viable alternative at input '\.\s*(in)'|mismatched input '(in)'|mismatched input '(true|false|null)' expecting IDENTIFIER`)
	unknownSymbol = regexp.MustCompile(`^Syntax error: token recognition error at: '(=|&|\||.)`)
)

// withHint returns the message about a syntax error with the correct form, if that is known.
func withHint(message string) string {
	if found := reservedWord.FindStringSubmatch(message); found != nil {
		word := found[1] + found[2] + found[3] + found[4]
		return fmt.Sprintf(
			`%s; %s is a reserved word, and a field of this name is written in brackets, as in object["%s"]`,
			message, word, word)
	}
	found := unknownSymbol.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	switch symbol := found[1]; {
	case symbol == "=":
		return message + "; write == to compare"
	case symbol == "&" || symbol == "|":
		return message + "; write " + symbol + symbol + " to join conditions"
	case symbol > "\x7f":
		return message + `; a field whose name is no plain word is written in brackets, as in object["größe"]`
	}
	return message
}
