package bulk

import (
	"context"
	"testing"

	"belfry/pkg/store"
)

// endless is a store whose list has no end.
type endless struct{}

func (endless) List(_ context.Context, o store.ListOptions) (store.List, error) {
	return store.List{Objects: make([]store.Stored, o.Limit), Next: "more"}, nil
}

// A run holds no more objects than it may change, however many match.
func TestARunHasAtMostSoManyObjects(t *testing.T) {
	all, more, err := Request{All: true}.targets(t.Context(), endless{}, &tally{})
	if err != nil || !more || len(all) != MaxObjects {
		t.Errorf("%d objects, %t, %v", len(all), more, err)
	}
}
