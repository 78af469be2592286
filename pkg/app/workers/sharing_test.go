package workers

import (
	"errors"
	"testing"

	"belfry/listeners/aggregate"
	"belfry/listeners/mapping"
	"belfry/listeners/mapping/route"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// A round names a mapping by its place. During a reload, the group of the mappings before still receives rounds: they
// must not be run with the mappings of after, of which another may have that place.
func TestARoundOfOtherMappingsIsNotRun(t *testing.T) {
	before, now := &route.Group{}, &route.Group{}
	mapper := mapping.NewWorker(&store.Set{}, mapping.Options{})
	counter := aggregate.NewWorker(&store.Set{}, aggregate.Options{})
	t.Cleanup(mapper.Close)
	t.Cleanup(counter.Close)
	w := &Workers{Served: serving.NewCurrent(&serving.Generation{Set: &store.Set{}, Sharing: now, Mapper: mapper, Aggregator: counter})}
	for _, c := range []struct {
		name  string
		group *route.Group
		want  errs.Kind
	}{
		{"of the mappings before", before, errs.Unavailable},
		{"of those that are served, which are none", now, errs.Invalid},
	} {
		ended := make(chan error, 1)
		w.runForAnother(c.group, route.Round{Target: "t", Source: "s"}, func(err error) { ended <- err })
		if err := <-ended; !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	w.Served.Replace(&serving.Generation{})
	if err := w.Served.Retired(t.Context()); err != nil {
		t.Error(err)
	}
}
