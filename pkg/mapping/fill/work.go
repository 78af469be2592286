package fill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// Works are the tasks of a Filler under the configuration of a process.
type Works struct {
	state  string // uuid of the object that holds the state
	byName map[string]*work
}

// work is the task of a fill over the objects of a store.
type work struct {
	store      *store.Store
	definition string         // identifies all of the configuration on which the result depends
	mapping    *store.Mapping // nil: the work is not about one

	kind   walk.Kind
	shown  string // its name, in logs and metrics; "": that in the state
	called string // what its name is the name of, in logs
	what   string // what is filled, in logs
	begins string // logged at the beginning
	does   string // and meanwhile; "": filling what
	done   string // and at the end; "": what are filled

	page   int // objects that are filled before the place is stored
	atOnce int

	// needs says whether there is anything to do for an object, as the page has it: the others are only read past. nil:
	// there is for each.
	needs func(o store.Stored) bool

	after string // the name of a work that has to be done before; "": none

	// fill does it for one object, as the page has it. read is called with how many other objects it has read since the
	// last call, and ends it by an error. together says that it reads nothing else.
	fill     func(ctx context.Context, o store.Stored, read func(objects int) error) error
	together bool

	// begin is called before the first object of a fill, or of the rest of one. since is from when events may have been
	// missed; zero: not known. nil: nothing is.
	begin func(since time.Time)

	build     builds                                  // the work is to build these indexes; nil: it is done by fill
	readyFrom func(ctx context.Context) (bool, error) // whether what the work reads is complete; nil: it is

	// trust is called with whether the work is done, and whether it waits for other processes, each time the state was
	// read: requests depend on it. nil: none does.
	trust   func(filled, disputed bool)
	refuses bool // requests are refused that depend on it, until it is done

	// onEvents says that the work makes up for events that were missed, and onlyAgain that it does nothing else: a new
	// definition does not begin it, unless processes had different ones for a while.
	onEvents, onlyAgain bool
}

// targetsAtOnce is how many targets are filled at once: on a backend over a network a target is mostly waited for.
const targetsAtOnce = 8

func newWorks(state string, byName map[string]*work) Works {
	for name, w := range byName {
		w.shown = cmp.Or(w.shown, name)
		w.does, w.done = cmp.Or(w.does, "filling "+w.what), cmp.Or(w.done, w.what+" are filled")
	}
	return Works{state: state, byName: byName}
}

// Derived returns the arrays and aggregates of mappings, the keys of stores that are numbers, the computed fields of
// stores, and the objects that a cascade should have deleted. Few of their objects are read at once, so that a fill
// slows down when the backend does.
//
// ownKeys reports whether only belfry writes the keys of a store: it has always written them as strings.
func Derived(set *store.Set, ownKeys func(store string) bool) Works {
	all := map[string]*work{}
	reconciler := mapping.NewReconciler(set, mapping.Options{Pace: mapping.NewPace(0)})
	for i := range set.Mappings() {
		if m := &set.Mappings()[i]; m.Array != "" { // else it copies nothing
			name := m.Source + " in " + m.Target + "." + m.Array
			all[name] = arrays(set.Store(m.Source), set.Store(m.Target), m, reconciler)
			if !ownKeys(m.Source) {
				all["numbers of "+name] = numbers(set.Store(m.Source), set.Store(m.Target), m, reconciler)
			}
		}
	}
	engine := aggregates.New(set, aggregates.Options{})
	for i := range set.Aggregating() {
		m := &set.Aggregating()[i]
		all[m.Source+" aggregated in "+m.Target] = aggregated(set.Store(m.Source), set.Store(m.Target), m, engine)
	}
	for name, s := range set.Stores() {
		if len(s.Maps()) > 0 && !ownKeys(name) {
			all[keysOf(name)] = keys(s)
		}
		if slices.ContainsFunc(s.Maps(), func(m store.Mapping) bool { return m.Array != "" && m.MaxEntry > 0 }) {
			all["escapes of "+name] = escapes(s)
		}
		if len(s.Copies()) > 0 {
			all["copies of "+name] = copied(s, mapping.NewCopier(set, mapping.CopierOptions{}))
		}
		if len(s.ComputedFields()) > 0 {
			all["computed of "+name] = computed(s)
		}
		if maps, clears := cascading(set, name), clearing(set, name); len(maps)+len(clears) > 0 {
			all[orphansOf+name] = orphans(set, s, maps, clears, reconciler)
		}
	}
	return newWorks("MAPPINGS", all)
}

func arrays(source, target *store.Store, m *store.Mapping, reconciler *mapping.Reconciler) *work {
	when := ""
	if m.When != nil {
		when = fmt.Sprint(m.When)
	}
	return &work{
		store: target, mapping: m, page: 100, atOnce: targetsAtOnce, kind: walk.Mapping, called: "mapping",
		what: "the arrays of a mapping", onEvents: true,
		begins: "a mapping is new or has changed: filling its arrays from the objects",
		definition: hashOf(append([]any{m.Key, m.Fields, m.Limit, m.MaxBytes, m.MaxEntry, when, m.SourceOwner,
			m.TargetOwner}, rulesOf(when)...)...),
		readyFrom: func(ctx context.Context) (bool, error) { return source.FindsLinked(ctx, m.Key) },
		fill: func(ctx context.Context, o store.Stored, read func(objects int) error) error {
			return reconciler.Fill(store.WithCall(ctx, store.Call{Origin: event.OriginMapping}), m, o.UUID, read)
		},
	}
}

// aggregated computes the aggregates of every target of all objects that name it. Until a target is done, events of its
// objects are counted and leave its properties as they are.
func aggregated(source, target *store.Store, m *store.Mapping, engine *aggregates.Engine) *work {
	definition := target.Aggregates().Definition(m.Source) // with the generation of its records
	when := ""
	if m.When != nil {
		when = fmt.Sprint(m.When)
	}
	return &work{
		store: target, mapping: m, page: 100, atOnce: targetsAtOnce, kind: walk.Aggregates, called: "mapping",
		what: "the aggregates of a mapping", onEvents: true,
		begins:     "aggregates are new or have changed: computing them from the objects that there are",
		definition: hashOf(append([]any{definition}, rulesOf(when)...)...),
		readyFrom:  func(ctx context.Context) (bool, error) { return source.FindsLinked(ctx, m.Key) },
		fill: func(ctx context.Context, o store.Stored, read func(objects int) error) error {
			return engine.Fill(store.WithCall(ctx, store.Call{Origin: event.OriginAggregate}), m, o.UUID, read)
		},
	}
}

func computed(s *store.Store) *work {
	return &work{
		store: s, page: 100, atOnce: targetsAtOnce, kind: walk.Computed, shown: s.Name(), called: "store",
		what: "the computed properties of a store", onEvents: true,
		begins:     "computed properties are new or have changed: computing them for the objects that there are",
		definition: hashOf(append([]any{s.ComputedDefinition()}, rulesOf(fmt.Sprint(s.ComputedDefinition()))...)...),
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			o, err := s.Get(ctx, o.UUID)
			if errors.Is(err, errs.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			left, err := mapping.Recompute(ctx, s, o)
			if err == nil && len(left) > 0 {
				err = errs.New(errs.Conflict, "other writes keep changing it")
			}
			return err
		},
	}
}

// copied gives the objects of a store the copies of the objects that they name.
func copied(s *store.Store, copier *mapping.Copier) *work {
	return &work{
		store: s, page: 100, atOnce: targetsAtOnce, kind: walk.Copies, shown: s.Name(), called: "store",
		what: "the copies of referenced objects in a store", onEvents: true,
		begins:     "copies of referenced objects are new or have changed: setting them in the objects that there are",
		definition: hashOf(s.Copies()),
		fill: func(ctx context.Context, o store.Stored, _ func(objects int) error) error {
			return copier.Correct(ctx, s, o.UUID)
		},
	}
}

// timeRule identifies how expressions compare the times of objects; see policy. Change it with that comparison.
const timeRule = "times compare as times"

// rulesOf returns the rules besides their text that determine the results of expressions. A previous release compared
// times as texts, and its results are computed again. The definitions of other expressions stay.
func rulesOf(expressions string) []any {
	if strings.Contains(expressions, "created") || strings.Contains(expressions, "updated") {
		return []any{timeRule}
	}
	return nil
}

func hashOf(parts ...any) string {
	data, err := json.Marshal(parts)
	if err != nil {
		panic("fill: " + err.Error()) // texts and numbers can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
