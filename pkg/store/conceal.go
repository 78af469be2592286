package store

import (
	"context"
	"errors"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// concealed returns the error of an update that does not fit the schema as its caller may see it: of a field
// that they may not read it says that it does not fit, and nothing of what is in it. stored may not fit by itself, under a
// schema that has changed since, and a merge patch leaves parts of it. What replaces a field is the caller's own.
func (s *Store) concealed(ctx context.Context, call Call, err error, stored, input object.Object, patch bool) error {
	var e *errs.Error
	if !call.Client || call.Trusted || !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	shown := *e
	shown.Fields = nil
	reads := map[string]bool{}
	for _, problem := range e.Fields {
		name := firstToken(problem.Pointer)
		known, asked := reads[name]
		if !asked {
			value, given := input[name]
			replaced := given && (!patch || len(value) == 0 || value[0] != '{')
			known = name == "" || replaced || s.mayShow(ctx, call, name, stored)
			reads[name] = known
		}
		if !known {
			problem = errs.Field{Pointer: object.Pointer(name), Message: "does not fit the schema"}
		}
		if !slices.Contains(shown.Fields, problem) {
			shown.Fields = append(shown.Fields, problem)
		}
	}
	return &shown
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
