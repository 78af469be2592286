package modeling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
)

// countTime is how long a proposal waits for the number of objects of all its stores.
const countTime = 200 * time.Millisecond

// effects says what belfry will do with the objects that there are, and which requests it will refuse.
func (e *Editor) effects(ctx context.Context, served *serving.Generation, next *plan.Plan) (all []string) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	x := &effects{ctx: ctx, set: served.Set, before: served.Config, now: next.Config}
	for _, name := range slices.Sorted(maps.Keys(x.before.Stores)) {
		if x.now.Stores[name] == nil {
			x.add("%s is no longer served. Its %s stay where they are, and are there again if the store is.", name,
				x.objects(name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.now.Stores)) {
		if before := x.before.Stores[name]; before != nil {
			x.store(before, x.now.Stores[name])
		}
	}
	x.mappings()
	x.files()
	return x.all
}

type effects struct {
	ctx         context.Context
	set         *store.Set
	before, now *config.Config
	all         []string
}

func (x *effects) add(format string, args ...any) {
	x.all = append(x.all, fmt.Sprintf(format, args...))
}

// objects is the number of objects of a store in words.
func (x *effects) objects(name string) string {
	if st := x.set.Store(name); st != nil {
		if n, _, err := st.Count(x.ctx); err == nil {
			return count.Of(int(n), "object")
		}
	}
	return "objects"
}

// store adds the effects of changes of a store that stays.
func (x *effects) store(before, now *config.Store) {
	name := now.Name
	for _, fields := range now.Indexes {
		if !slices.ContainsFunc(before.Indexes, func(f []string) bool { return slices.Equal(f, fields) }) {
			x.add("An index of %s by %s is built from its %s in the background. Lists that need it are refused until "+
				"then.", name, strings.Join(fields, ", "), x.objects(name))
		}
	}
	for _, fields := range before.Indexes {
		if !slices.ContainsFunc(now.Indexes, func(f []string) bool { return slices.Equal(f, fields) }) {
			x.add("Lists of %s can no longer filter or sort by %s, unless another index has it.", name,
				strings.Join(fields, ", "))
		}
	}
	for _, fields := range now.Unique {
		if !slices.ContainsFunc(before.Unique, func(f []string) bool { return slices.Equal(f, fields) }) {
			x.add("The values of %s in the %s of %s are collected in the background. Until then two "+
				"objects can get one value.",
				strings.Join(fields, ", "), x.objects(name), name)
		}
	}
	if before.Schema != now.Schema {
		x.add("Each write to %s has to match the new schema. Its %s stay as they are; the page Schemas finds those "+
			"that do not match.", name, x.objects(name))
	}
	if !maps.Equal(before.Copies, now.Copies) {
		x.add("The copies of %s are filled in its %s in the background.", name, x.objects(name))
	}
	if !maps.Equal(before.Computed, now.Computed) {
		x.add("The computed fields of %s are computed again in its %s in the background.", name, x.objects(name))
	}
	if before.Expose != nil && now.Expose == nil {
		x.add("%s is no longer served over HTTP at %s.", name, before.Expose.URL)
	}
	if !slices.Equal(before.Search.Fields, now.Search.Fields) || before.Search.Language != now.Search.Language {
		x.add("The words in the %s of %s are indexed again in the background.", x.objects(name), name)
	}
}

// mappings adds the effects of changes of mappings.
func (x *effects) mappings() {
	for _, source := range slices.Sorted(maps.Keys(x.now.Stores)) {
		before := x.before.Stores[source]
		if before == nil {
			continue // it has no objects that a mapping could copy, or they are as they were
		}
		for target, m := range x.now.Stores[source].Map {
			was, had := before.Map[target]
			if !had || was.Key != m.Key || was.Target != m.Target || !slices.Equal(was.Fields, m.Fields) ||
				was.When != m.When || was.SameOwner != m.SameOwner || !maps.Equal(was.Aggregates, m.Aggregates) {
				x.add("%s of %s is filled from the %s of %s in the background, %d a second at most.",
					derived(m), target, x.objects(source), source, x.now.FillRate)
			}
		}
		for target, m := range before.Map {
			if _, stays := x.now.Stores[source].Map[target]; !stays {
				x.add("%s of %s is no longer maintained. What it has stays.", derived(m), target)
			}
		}
	}
}

// derived is what a mapping maintains in a target.
func derived(m config.Mapping) string {
	names := slices.Sorted(maps.Keys(m.Aggregates))
	if m.Target != "" {
		names = slices.Insert(names, 0, m.Target)
	}
	return strings.Join(names, ", ")
}

// files adds the effects of changes of the fields with files.
func (x *effects) files() {
	for _, name := range slices.Sorted(maps.Keys(x.now.Binaries)) {
		before, now := x.before.Binaries[name], x.now.Binaries[name]
		switch {
		case before == nil || len(before.Map) == len(now.Map):
		case len(before.Map) == 0:
			x.add("%s accepted files in any field so far. From now on it accepts them in the named fields alone.", name)
		case len(now.Map) == 0:
			x.add("%s then names no field, so it accepts files in any field that clients may set.", name)
		}
	}
}
