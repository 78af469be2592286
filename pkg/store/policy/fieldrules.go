package policy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// FieldRule has the rules of one field as configured; "" is no rule.
type FieldRule struct {
	Read  string // over user, object, isOwner, linked, now
	Write string // and input
}

// NeverRead reports whether a read rule is the word false: the field never leaves the server.
func NeverRead(rule string) bool { return strings.TrimSpace(rule) == "false" }

// FieldProblem is an error in a rule of a field. Access is read or write.
type FieldProblem struct {
	Field, Access string
	Problem
}

// Fields says which fields of a store's objects a client may see and change. It is immutable; nil has no rules.
type Fields struct {
	rules    Policy // determines the owner
	all      map[string]field
	readers  []string        // the fields with a read rule, sorted
	writers  []string        // the fields with a write rule, sorted
	byObject map[string]bool // the read rule depends on the object
}

// field has the rules of one field.
type field struct {
	never       bool // no client sees it
	ignored     bool // values from clients are ignored
	trustedSets bool // except those from trusted clients
	read, write *rule
}

// CompileFields compiles the rules of fields. Of r, only the owner and the references matter. The result is nil
// when there are problems.
func CompileFields(r Rules, all map[string]FieldRule) (*Fields, []FieldProblem) {
	p, _ := Compile(Rules{Owner: r.Owner, OwnerField: r.OwnerField, Users: r.Users, References: r.References})
	f := &Fields{rules: *p, all: map[string]field{}, byObject: map[string]bool{}}
	var problems []FieldProblem
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var of field
		compile := func(access, expression string) *rule {
			if text := strings.TrimSpace(expression); text == "" || text == "true" {
				return nil
			}
			compiled, found := p.compile(Op(access), expression)
			if access == "read" && len(found) == 0 && compiled.input {
				found = []Problem{{Line: 1, Column: 1, Message: "input is for write rules: a read has no input"}}
			}
			for _, problem := range found {
				problems = append(problems, FieldProblem{name, access, problem})
			}
			return compiled
		}
		if of.never = NeverRead(all[name].Read); !of.never {
			of.read = compile("read", all[name].Read)
		}
		of.write = compile("write", all[name].Write)
		f.all[name] = of
	}
	if len(problems) > 0 {
		return nil, problems
	}
	f.index()
	return f, nil
}

// With returns rules with the short forms: private fields are never seen, and of private and read-only fields
// values from clients are ignored, except those from trusted clients for read-only fields.
func (f *Fields) With(private, readOnly []string) *Fields {
	out := &Fields{all: map[string]field{}, byObject: map[string]bool{}}
	if f != nil {
		out.rules = f.rules
		maps.Copy(out.all, f.all)
	}
	for _, name := range readOnly {
		of := out.all[name]
		of.ignored, of.trustedSets = true, true
		out.all[name] = of
	}
	for _, name := range private {
		of := out.all[name]
		of.never, of.ignored, of.trustedSets, of.read = true, true, false, nil
		out.all[name] = of
	}
	out.index()
	return out
}

func (f *Fields) index() {
	for _, name := range slices.Sorted(maps.Keys(f.all)) {
		of := f.all[name]
		if of.read != nil {
			f.readers = append(f.readers, name)
			f.byObject[name] = of.read.dependsOnObject()
		}
		if of.write != nil && !of.ignored {
			f.writers = append(f.writers, name)
		}
	}
}

// Never reports whether a field never leaves the server.
func (f *Fields) Never(name string) bool { return f != nil && f.all[name].never }

// NeverRead returns the fields that never leave the server, in no order.
func (f *Fields) NeverRead() []string {
	var names []string
	for name, of := range f.all {
		if of.never {
			names = append(names, name)
		}
	}
	return names
}

// Ignores reports whether the value that a client sends for a field is ignored.
func (f *Fields) Ignores(name string, trusted bool) bool {
	of := f.all[name]
	return of.ignored && (!trusted || !of.trustedSets)
}

// Readers returns the fields that have a read rule, sorted. It must not be modified.
func (f *Fields) Readers() []string { return f.readers }

// Writers returns the fields that have a write rule, sorted. It must not be modified.
func (f *Fields) Writers() []string { return f.writers }

// NeedsObject reports whether the read rule of a field depends on the stored object.
func (f *Fields) NeedsObject(name string) bool { return f.byObject[name] }

// MayRead reports whether a read rule may read a field of the stored object that matches; see Policy.MayRead.
func (f *Fields) MayRead(matches func(field string) bool) bool {
	return slices.ContainsFunc(f.readers, func(name string) bool {
		return f.rules.mayRead(f.all[name].read, matches)
	})
}

// AllowWrite returns nil when the write rule of a field holds, else an error like Policy.Allow, which names the
// field. op is Create or Update.
func (f *Fields) AllowWrite(ctx context.Context, op Op, name string, in Input) error {
	r := f.all[name].write
	if r == nil {
		return nil
	}
	denial, err := f.rules.evaluate(ctx, r, op, in)
	if err != nil || denial == nil {
		return err
	}
	denial.Op = Op("writing " + name)
	e := errs.New(errs.Denied, "you may not set the field %q to this value", name)
	if in.User == nil {
		e = errs.New(errs.Unauthenticated, "the field %q may not be set to this value without logging in; a login "+
			"helps only if its rule allows your user", name)
	}
	e.Err = denial
	return e
}

// FieldReader decides which fields one caller may read, at one time. A rule that does not depend on the object, and
// the parts of others that depend only on the user, are evaluated once. It is not safe for concurrent use.
type FieldReader struct {
	fields *Fields
	in     Input
	failed func(*Denial)
	static map[string]bool
}

// For returns a reader for a caller: the user, the time and the budget of in. failed, if not nil, is called for each
// rule that could not be evaluated, which hides its field.
func (f *Fields) For(in Input, failed func(*Denial)) *FieldReader {
	return &FieldReader{fields: f,
		in: Input{User: in.User, Session: in.Session, Now: in.Now, Budget: in.Budget, Links: in.Links,
			UserValues: &UserValues{}},
		failed: failed}
}

// MayRead reports whether the caller may read a field of a stored object, which may be nil if the rule does not
// depend on it. A rule that can't be evaluated does not hold. An error is that of a context that has ended, or of
// a spent budget: see Policy.Allow.
func (r *FieldReader) MayRead(ctx context.Context, name string, stored object.Object) (bool, error) {
	of := r.fields.all[name]
	if of.never || of.read == nil {
		return !of.never, nil
	}
	byObject := r.fields.byObject[name]
	if !byObject {
		if holds, known := r.static[name]; known {
			return holds, nil
		}
	}
	in := r.in
	in.Object = stored
	denial, err := r.fields.rules.evaluate(ctx, of.read, Get, in)
	if err != nil {
		return false, err
	}
	if denial != nil && denial.Reason != "" && r.failed != nil {
		denial.Op = Op("reading " + name)
		r.failed(denial)
	}
	if !byObject {
		if r.static == nil {
			r.static = map[string]bool{}
		}
		r.static[name] = denial == nil
	}
	return denial == nil, nil
}

// Hidden returns those of the named fields that the caller may not read, in their order.
func (r *FieldReader) Hidden(ctx context.Context, names []string, stored object.Object) ([]string, error) {
	var hidden []string
	for _, name := range names {
		may, err := r.MayRead(ctx, name, stored)
		if err != nil {
			return nil, err
		}
		if !may {
			hidden = append(hidden, name)
		}
	}
	return hidden, nil
}
