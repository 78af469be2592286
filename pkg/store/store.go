// Package store is the only way to write an object: it merges, validates,
// applies policies and limits, gives the object its next revision, and passes
// the driver one record to write atomically, event included.
//
// # Steps of a write
//
// Save, Update and Delete take these steps:
//
//  1. read the record (Update, Delete), evaluate the policy, merge;
//  2. drop the fields that the caller may not set, validate against the schema,
//     ask the interceptor;
//  3. publish the live announcement (Store.Save, ...), without a guarantee;
//  4. compute the computed fields, and write body, index keys, revision and event
//     under the precondition that the record is as it was read;
//  5. pass the event to the outbox, which publishes it.
//
// The write is acknowledged after step 4, which is durable. Whatever happens in
// step 5, the event is in the record and a sweep finds it.
//
// # Checks of a write
//
// A client is a caller whose Call has Client set. A trusted client is exempt from
// the policy and the rules of fields, and may set read-only fields.
//
//	                      Save, Update    Delete    Mutate           CompareAndSet  CopyRecord
//	policy                clients         clients   clients          no             no
//	write rules of fields clients         -         clients          no             no
//	fields it may set     the caller's    -         any              any            the whole record
//	schema, size, keys    yes             -         yes              no             no
//	interceptor           clients         clients   clients          no             no
//	live announcement     yes             yes       yes              no             no
//	computed fields       yes             -         yes              yes            no
//	events                yes             yes       yes, and extra   yes            those of the source
//	idempotency           yes             yes       no               no             by revision
//	precondition          UUID free, If   If        read-modify      the revision   older or absent
//
// Mutate is how belfry's own services write what no caller may set, on behalf of
// a caller who may update the object. CompareAndSet and CopyRecord check nothing:
// they are methods of Worker, and only workers and migrations make one.
package store

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// MaxObjectSize is the most bytes that the fields set by callers can have in one
// object; a store may set less.
const MaxObjectSize = 256 << 10

// Validator validates an object without what the store maintains; it reports errs.Invalid.
type Validator interface {
	Validate(ctx context.Context, doc []byte) error
}

// Filler sets the members that a new object lacks and that have a default.
type Filler interface{ Fill(o object.Object) }

// Outbox receives every event right after the write that holds it.
type Outbox interface {
	// Committed never blocks. The event stays in the record until it is
	// published, whatever Committed does with it.
	Committed(store string, p driver.Pending)
}

// Announcer publishes what is about to happen to live subscribers, without a
// guarantee.
type Announcer interface {
	HasInterest(name event.Name) bool
	Live(name event.Name, payload []byte)
}

// Options configure a store, which copies them. Name is required.
type Options struct {
	Name          string
	Policy        *policy.Policy   // nil: every client may do everything
	ClientUUIDs   bool             // with a policy too, clients may choose the uuids of new objects
	Schema        Validator        // nil: any object
	Defaults      Filler           // of new objects; nil: none
	Fields        *policy.Fields   // rules for fields; nil: none
	Private       []string         // fields that clients neither set nor see
	ReadOnly      []string         // fields that clients see, and only trusted clients set
	Reserved      []string         // fields that clients see, and that belfry alone sets
	Maintained    []string         // further fields that belfry maintains: the schema does not judge them
	MaxSize       int              // 0: MaxObjectSize
	Maps          []Mapping        // those whose Source this store is
	Arrays        []string         // arrays of this store that mappings maintain
	Unique        [][]string       // fields whose values no two objects have in common
	Computed      *policy.Computed // fields that each write computes; nil: none
	Binaries      []string         // properties that hold nothing but records of binaries
	IndexBinaries bool             // objects are indexed by the binaries they hold
	Indexes       []query.Index    // for listing
	Unindexed     bool             // for development: a list without an index reads up to 10,000 objects, and says which one to declare
	Search        []string         // fields whose text lists search by words
	Searcher      Searcher         // of Search; nil: none
	SearchRule    *policy.Selector // of the rule of lists, so that a search goes through no object that the caller may not list; nil: it goes through all
	Sealer        Sealer           // of the cursors of lists; nil: they can be read
	Outbox        Outbox
	Announce      Announcer   // nil: no announcements
	Interceptor   Interceptor // nil: none
	InterceptsGet bool        // the Interceptor amends what clients read

	BeforeDelete func(ctx context.Context, o Stored) error // asked last before a client deletes an object; nil: nothing

	Logger        *slog.Logger     // nil: discards
	Now           func() time.Time // nil: time.Now
	Locker        Locker           // nil: a KeyLock
	HideForbidden bool             // a client that may not get an object gets NotFound
	NoEvents      bool             // writes make no events and no announcements

	// FenceAfter is how long a claim of a unique value counts as one of a write in progress, for which another writer
	// waits. 0: a second; less: not at all.
	FenceAfter time.Duration
}

// Store holds objects. It is safe for concurrent use.
type Store struct {
	opts    Options
	driver  driver.Store
	rules   *access.Rules
	mapped  []string      // the distinct keys of Maps
	carried []string      // fields that an event keeps however large it is: mapped, and the owner, by whom a cascade decides
	indexed []query.Index // the indexes that Open made, which every write keeps complete
	listed  []query.Index // those of Indexes that lists of clients use: none has an internal field
	unique  []constraint  // Unique
	claims  *claims       // nil without Unique

	expanding *semaphore.Weighted // of those who read objects for expansions
}

// Open opens the store in a backend, with the indexes that its mappings and
// its listing need.
func Open(ctx context.Context, backend driver.Backend, o Options) (*Store, error) {
	o.Indexes = query.Prepare(o.Indexes)
	s := newStore(o)
	s.indexed = s.opts.Indexes
	spec := driver.Spec{Name: o.Name, Keys: s.keys}
	for _, key := range s.mapped {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: index(key), Parts: 1, Multi: true})
	}
	if o.IndexBinaries {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: binaryIndex, Parts: 2, Multi: true})
	}
	for _, i := range s.indexed {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: i.Name, Parts: len(i.Fields), Multi: i.HasElements()})
	}
	d, err := backend.Open(ctx, spec)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "opening store %s", o.Name)
	}
	s.driver = d
	if len(s.unique) > 0 {
		if s.claims, err = openClaims(ctx, backend, o.Name); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "opening the claims of store %s", o.Name)
		}
	}
	return s, nil
}

func newStore(o Options) *Store {
	o.Maps, o.Indexes = slices.Clone(o.Maps), slices.Clone(o.Indexes)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Locker == nil {
		o.Locker = NewKeyLock()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxSize == 0 {
		o.MaxSize = MaxObjectSize
	}
	s := &Store{opts: o, unique: constraintsOf(o.Unique), expanding: semaphore.NewWeighted(maxExpandReaders)}
	s.rules = s.newRules()
	isInternal := func(i query.Index) bool { return slices.ContainsFunc(i.TopFields(), access.IsInternal) }
	s.listed = slices.DeleteFunc(slices.Clone(o.Indexes), isInternal)
	for _, m := range o.Maps {
		if !slices.Contains(s.mapped, m.Key) {
			s.mapped = append(s.mapped, m.Key)
		}
	}
	s.carried = slices.Clone(s.mapped)
	if owner := s.rules.Owner(); owner != "" {
		s.carried = append(s.carried, owner)
	}
	return s
}

// newRules makes the rules that the options describe.
func (s *Store) newRules() *access.Rules {
	o := &s.opts
	rules := access.Options{
		Store: o.Name, Policy: o.Policy, ClientUUIDs: o.ClientUUIDs, Fields: o.Fields, Private: o.Private, ReadOnly: o.ReadOnly,
		Reserved: o.Reserved, Maintained: o.Maintained, Arrays: o.Arrays, Binaries: o.Binaries, Computed: o.Computed,
		HideForbidden: o.HideForbidden, Logger: o.Logger, Now: o.Now,
	}
	if o.Interceptor != nil && o.InterceptsGet {
		rules.Amended = s.amended
	}
	return access.New(rules)
}

// WithOptions returns a store of the same records whose options differ. Its
// indexes are still those of Open. s is unchanged.
func (s *Store) WithOptions(change func(*Options)) *Store {
	o := s.opts
	change(&o)
	other := newStore(o)
	other.driver, other.indexed, other.claims, other.expanding = s.driver, s.indexed, s.claims, s.expanding
	return other
}

// Reconfigured returns a store of the same records with the options of another configuration,
// whose Name, keys of Maps, Unique and IndexBinaries are the same. s is unchanged, and both can be used at once.
// Of the indexes it has those that Open made; missing are the others.
func (s *Store) Reconfigured(o Options) (other *Store, missing []query.Index) {
	same := func(i query.Index) func(query.Index) bool {
		return func(made query.Index) bool { return made.Name == i.Name && slices.Equal(made.Fields, i.Fields) }
	}
	var has []query.Index
	for n, i := range query.Prepare(o.Indexes) {
		if slices.ContainsFunc(s.indexed, same(i)) {
			has = append(has, i)
		} else {
			missing = append(missing, o.Indexes[n])
		}
	}
	return s.WithOptions(func(now *Options) {
		now.Policy, now.SearchRule, now.ClientUUIDs, now.Schema, now.Defaults, now.Fields = o.Policy, o.SearchRule, o.ClientUUIDs, o.Schema, o.Defaults, o.Fields
		now.Private, now.ReadOnly, now.Reserved, now.Maintained, now.MaxSize = o.Private, o.ReadOnly, o.Reserved, o.Maintained, o.MaxSize
		now.Arrays, now.Binaries, now.Indexes, now.Unindexed = o.Arrays, o.Binaries, has, o.Unindexed
		now.Maps, now.Computed, now.Search, now.Searcher = o.Maps, o.Computed, o.Search, o.Searcher
		now.Interceptor, now.InterceptsGet, now.BeforeDelete = o.Interceptor, o.InterceptsGet, o.BeforeDelete
	}), missing
}

// Name returns the name of the store.
func (s *Store) Name() string { return s.opts.Name }

// Rules returns who may do what with the objects, and see and set which of their fields.
func (s *Store) Rules() *access.Rules { return s.rules }

// Now returns the time by the clock of the store.
func (s *Store) Now() time.Time { return s.opts.Now() }

// IndexesBinaries reports whether objects are indexed by the binaries they hold.
func (s *Store) IndexesBinaries() bool { return s.opts.IndexBinaries }

// Driver returns the driver's store, which the outbox reads pending events from.
func (s *Store) Driver() driver.Store { return s.driver }

// IndexLag returns how long after a write indexes are sure to have it.
func (s *Store) IndexLag() time.Duration {
	if d, ok := s.driver.(driver.IndexLagger); ok {
		return d.IndexLag()
	}
	return 0
}

// Count returns roughly how many objects there are, and how many events are
// pending.
func (s *Store) Count(ctx context.Context) (objects, pending int64, err error) {
	return s.driver.Count(ctx)
}
