package store_test

import (
	"context"
	"errors"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// TestBeforeDelete: what is asked last before a client deletes an object can refuse it, and is not asked for what is
// refused already, nor for what belfry itself deletes.
func TestBeforeDelete(t *testing.T) {
	var asked []string
	refused := errors.New("not now")
	s, _ := open(t, store.Options{
		Policy: compile(t, policy.Rules{Owner: true}),
		BeforeDelete: func(_ context.Context, o store.Stored) error {
			asked = append(asked, o.UUID)
			return refused
		},
	})
	save(t, s, "a", `{"user":"ada"}`)
	if err := s.Delete(as(t.Context(), "bob"), "a", 0); !errors.Is(err, errs.Denied) || len(asked) > 0 {
		t.Errorf("a stranger: %v, asked for %v", err, asked)
	}
	if err := s.Delete(as(t.Context(), "ada"), "a", 0); !errors.Is(err, refused) || len(asked) != 1 {
		t.Errorf("the owner: %v, asked for %v", err, asked)
	}
	if err := s.Delete(t.Context(), "a", 0); err != nil || len(asked) != 1 {
		t.Errorf("belfry: %v, asked for %v", err, asked)
	}
}
