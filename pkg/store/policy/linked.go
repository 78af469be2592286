package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"belfry/internal/nearest"
	"belfry/pkg/object"
)

// LinkedVariable is the name by which a rule reads the objects that references name: linked.author.
const LinkedVariable = "linked"

// maxLinked is how many references a rule follows at most: each is a read of an object.
const maxLinked = 3

// Links reads the objects that the references of objects name.
type Links interface {
	// Linked returns the object that a reference of an object names; nil if that does not exist, or if the reference
	// names no object or several. It must not be modified. read is how many bytes were read for it, 0 if it is kept
	// from an earlier rule.
	Linked(ctx context.Context, of object.Object, reference string) (found object.Object, read int, err error)
}

// After is what a creation or an update makes of an object.
type After struct {
	Object func(ctx context.Context) (object.Object, error)

	// Refused returns why the write will be refused even if its rule allows it, since a reference can't name what it
	// names; nil if it can. Such an object is unknown to the rule, whether it exists or not. A rule that needs it has
	// the refusal in place of a denial, so nobody learns from the rule what the object has. nil: no write is refused.
	Refused func(ctx context.Context, reference string) (refusal, err error)
}

// linkedCost is the cost of a read of a linked object, in the units of costLimit. Its size adds to that: see
// bytesPerUnit.
const linkedCost = 5_000

// unreadError is in the error of a rule that needs an object which can't be read, or because of which the write will be
// refused. It is no denial.
type unreadError struct{ error }

// linked returns the object that a reference names: of the object after a write, else of the stored one. nil: none.
func (in *Input) linked(ctx context.Context, op Op, reference string) (object.Object, error) {
	of := in.Object
	if op == Create || op == Update {
		if in.After == nil {
			return nil, nil // a right must not follow from what was named before the write
		}
		var err error
		if of, err = in.After.Object(ctx); err != nil {
			return nil, err
		}
	}
	if in.Links == nil || of == nil {
		return nil, nil
	}
	if err := in.Budget.Check(); err != nil {
		return nil, err
	}
	found, read, err := in.Links.Linked(ctx, of, reference)
	if read > 0 {
		cost := uint64(linkedCost + read/bytesPerUnit)
		in.Budget.spend(&cost)
	}
	return found, err
}

// refused returns why a write will be refused because of what a reference names.
func (in *Input) refused(ctx context.Context, op Op, reference string) (refusal, err error) {
	if op != Create && op != Update || in.After == nil || in.After.Refused == nil {
		return nil, nil
	}
	if err := in.Budget.Check(); err != nil {
		return nil, err
	}
	return in.After.Refused(ctx, reference)
}

// linkedObjects are the linked objects of one evaluation. Each is read when the evaluation needs it.
type linkedObjects struct {
	traits.Mapper // no rule uses its other methods: see unknownLinks

	ctx    context.Context
	op     Op
	in     Input
	read   map[string]ref.Val // nil for a missing object
	failed error              // why an object could not be read

	refused error // why the write will be refused because of an object that the evaluation needed
}

var noObjects = types.NewRefValMap(types.DefaultTypeAdapter, map[ref.Val]ref.Val{})

func newLinkedObjects(ctx context.Context, op Op, in Input) *linkedObjects {
	return &linkedObjects{Mapper: noObjects, ctx: ctx, op: op, in: in, read: make(map[string]ref.Val, 1)}
}

// Find implements traits.Mapper.
func (l *linkedObjects) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	value, known := l.read[string(name)]
	if !known {
		var found object.Object
		refusal, err := l.in.refused(l.ctx, l.op, string(name))
		if refusal == nil && err == nil {
			found, err = l.in.linked(l.ctx, l.op, string(name))
		}
		switch {
		case err != nil:
			l.failed, value = err, types.WrapErr(err)
		case refusal != nil:
			l.refused, value = refusal, types.WrapErr(refusal)
		case found != nil:
			value = recordOf(found)
		}
		l.read[string(name)] = value
	}
	return value, value != nil
}

// Get implements traits.Indexer.
func (l *linkedObjects) Get(key ref.Val) ref.Val {
	if value, ok := l.Find(key); ok {
		return value
	}
	return types.NewErr("no such key: %v", key)
}

// explained returns the error of an evaluation. One that needed an object that does not exist says so.
func (l *linkedObjects) explained(err error) error {
	if l == nil {
		return err
	}
	_, key, _ := strings.Cut(err.Error(), "no such key: ")
	if value, read := l.read[key]; read && value == nil {
		return fmt.Errorf("%s.%s: no such object", LinkedVariable, key)
	}
	return err
}

// Contains implements traits.Container.
func (l *linkedObjects) Contains(key ref.Val) ref.Val {
	_, found := l.Find(key)
	return types.Bool(found)
}

// readsLinked returns the fields that a rule reads of linked objects, and the uuid of each.
func (r *rule) readsLinked(ctx context.Context, op Op, in Input) (all []Read, err error) {
	named := NamedFields(r.expression)
	for _, reference := range r.linked {
		found, err := in.linked(ctx, op, reference)
		if err != nil {
			return nil, err
		}
		variable := LinkedVariable + "." + reference
		all = append(all, readOf(found, variable, "uuid"))
		for _, f := range named {
			if f.Variable == variable {
				all = append(all, readOf(found, variable, f.Field))
			}
		}
	}
	return all, nil
}

// linkedReference returns the reference whose object an expression is: linked.author, linked["author"].
func linkedReference(e ast.Expr) (reference string, ok bool) {
	switch e.Kind() {
	case ast.SelectKind:
		return fieldOf(e, LinkedVariable)
	case ast.CallKind:
		args := e.AsCall().Args()
		if e.AsCall().FunctionName() != operators.Index || len(args) != 2 || args[1].Kind() != ast.LiteralKind ||
			args[0].Kind() != ast.IdentKind || args[0].AsIdent() != LinkedVariable {
			return "", false
		}
		name, ok := args[1].AsLiteral().(types.String)
		return string(name), ok
	}
	return "", false
}

// linkedVariableOf returns the variable in an expression of linkedReference.
func linkedVariableOf(e ast.Expr) ast.Expr {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().Operand()
	}
	return e.AsCall().Args()[0]
}

// linksOf returns the references that a rule follows, sorted, and the problems of those that it can't follow.
func linksOf(op Op, tree *cel.Ast, references []string) (links []string, problems []Problem) {
	n := &naming{tree: tree.NativeRep()}
	n.walk(n.tree.Expr(), nil)
	named, all := map[int64]bool{}, map[string]bool{}
	report := func(line, column int, format string, args ...any) {
		problems = append(problems, Problem{Op: op, Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
	}
	for _, f := range n.found {
		if f.Variable != LinkedVariable {
			continue
		}
		named[f.of] = true
		if !slices.Contains(references, f.Field) {
			report(f.Line, f.Column, "linked.%s: the store has no reference %s; %s", f.Field, f.Field,
				suggestReference(f.Field, references))
		}
		all[f.Field] = true
	}
	for _, id := range n.linked {
		if !named[id] {
			at := n.tree.SourceInfo().GetStartLocation(id)
			report(at.Line(), at.Column()+1, "linked is read by the name of a reference, as in linked.author")
		}
	}
	if links = slices.Sorted(maps.Keys(all)); len(links) > maxLinked && len(problems) == 0 {
		report(1, 1, "the rule follows %d references (%s), and may follow %d: each is a read; copy what it needs from "+
			"the others (copies)", len(links), strings.Join(links, ", "), maxLinked)
	}
	return links, problems
}

func suggestReference(name string, references []string) string {
	if near := nearest.Of(name, references); near != "" {
		return "did you mean " + near + "?"
	}
	if len(references) == 0 {
		return fmt.Sprintf("add references: {%s: STORE} to the store", name)
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(references)), ", ")
}
