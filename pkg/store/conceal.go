package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// concealed returns the error of an update that does not fit the schema as its caller may see it: of a field
// that they may not read it says that it does not fit, and nothing of what is in it. stored may not fit by itself, under a
// schema that has changed since, and a merge patch leaves parts of it. What replaces a field is the caller's own.
func (s *Store) concealed(ctx context.Context, call Call, err error, stored, input object.Object, patch bool) error {
	if !call.Client {
		return err
	}
	return conceal(err, func(name string) bool {
		value, given := input[name]
		replaced := given && (!patch || len(value) == 0 || value[0] != '{')
		return replaced || s.mayShow(ctx, call, name, stored)
	})
}

// Concealed returns an error of validation as it may leave the server, whoever receives it: of a field that never does it
// says that it does not fit, and nothing of what is in it.
func (s *Store) Concealed(err error) error {
	return conceal(err, s.leaves)
}

// conceal returns an error of validation without what it says of fields that may not be known, other than that they
// do not fit.
func conceal(err error, known func(name string) bool) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	shown := *e
	shown.Fields = concealFields(e.Fields, known)
	return &shown
}

// ConcealedFields is Concealed for the violations of an error.
func (s *Store) ConcealedFields(found []errs.Field) []errs.Field {
	return concealFields(found, s.leaves)
}

// leaves reports whether a field may leave the server.
func (s *Store) leaves(name string) bool { return !s.Hidden(name) }

func concealFields(found []errs.Field, known func(name string) bool) (shown []errs.Field) {
	asked := map[string]bool{}
	for _, problem := range found {
		name := firstToken(problem.Pointer)
		may, decided := asked[name]
		if !decided {
			may = name == "" || known(name)
			asked[name] = may
		}
		if !may {
			problem = errs.Field{Pointer: object.Pointer(name), Message: "does not fit the schema"}
		}
		if !slices.Contains(shown, problem) {
			shown = append(shown, problem)
		}
	}
	return shown
}

// mayShow reports whether a client may read a field of a stored object; not where that can't be decided.
func (s *Store) mayShow(ctx context.Context, call Call, name string, stored object.Object) bool {
	if s.Hidden(name) {
		return false
	}
	may, err := s.mayReadStored(ctx, call, name, stored)
	return err == nil && may
}

// firstToken returns the first name of a JSON pointer; "" for the whole object.
func firstToken(pointer string) string {
	token, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return object.UnescapeToken(token)
}
