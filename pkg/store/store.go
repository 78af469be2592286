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
// The write is acknowledged after step 4, which is durable. If step 5 fails, the
// event is still in the record, and a sweep finds it.
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
// With Mutate, belfry's own services write fields that no caller may set, on behalf
// of a caller who may update the object. CompareAndSet and CopyRecord check nothing:
// they are methods of Worker, and only workers and migrations create one.
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

// Validator validates an object without the fields that the store maintains; it reports errs.Invalid.
type Validator interface {
	Validate(ctx context.Context, doc []byte) error
}

// Filler sets the members that a new object lacks and that have a default.
type Filler interface{ Fill(o object.Object) }

// Outbox receives every event right after the write that holds it.
type Outbox interface {
	// Committed never blocks. The event stays in the record until it is
	// published, even if Committed drops it.
	Committed(store string, p driver.Pending)
}

// Announcer notifies live subscribers of an operation before it happens, without a
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
	WholeArrays   bool             // large ones are not kept in chunks, which former releases can't read
	MoreChunks    func() bool      // whether further ones may be kept in chunks; nil: they may
	Aggregated    []Mapping        // those into this store that have aggregates
	References    []Reference      // fields that name objects
	Copies        []Copy           // fields that have values of referenced objects, in the order in which they are set
	CopiedFrom    []string         // fields of this store that objects of other stores have copies of
	Unique        [][]string       // fields whose values no two objects have in common
	Computed      *policy.Computed // fields that each write computes; nil: none
	Binaries      []string         // properties that hold nothing but records of binaries
	IndexBinaries bool             // objects are indexed by the binaries they hold
	Indexes       []query.Index    // for listing
	KeyIndexes    []KeyIndex       // of belfry's own services
	Unindexed     bool             // for development: a list without an index reads all of up to 10,000 objects
	Search        []string         // fields whose text lists search by words
	Searcher      Searcher         // of Search; nil: none
	// of the rule of lists: a search goes through what it allows; nil: through all objects
	SearchRule    *policy.Selector
	Sealer        Sealer // of the cursors of lists; nil: they can be read
	Outbox        Outbox
	Announce      Announcer   // nil: no announcements
	Interceptor   Interceptor // nil: none
	InterceptsGet bool        // the Interceptor amends what clients read

	// SeenByRules says that rules of other stores see the objects without what never leaves the server, as clients
	// would, and sets further fields of that; stored is the whole object. nil: they see the objects as stored.
	SeenByRules func(seen, stored object.Object)

	BeforeDelete func(ctx context.Context, o Stored) error // asked last before a client deletes an object; nil: nothing

	Logger        *slog.Logger     // nil: discards
	Now           func() time.Time // nil: time.Now
	Locker        Locker           // nil: a KeyLock
	HideForbidden bool             // a client that may not get an object gets NotFound
	NoEvents      bool             // writes make no events and no announcements

	// FenceAfter is how long a claim of a unique value counts as one of a write in progress, for which another writer
	// waits. 0: a second; less: not at all.
	FenceAfter time.Duration

	// CollectWait is for how long writes wait for the claims of unique values to be complete, from when this process
	// opens them. 0: a second; less: not at all.
	CollectWait time.Duration

	// CompleteClaims has a write that gives an object a unique value refused until the claims are complete. Without
	// it, objects that nobody has read yet can have the same value.
	CompleteClaims bool
}

// normalized returns the options with their defaults, and with slices of their own.
func (o Options) normalized() Options {
	o.Maps, o.Indexes, o.Aggregated = slices.Clone(o.Maps), slices.Clone(o.Indexes), slices.Clone(o.Aggregated)
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
	return o
}

// rules returns the options of the rules, without an interceptor.
func (o *Options) rules() access.Options {
	return access.Options{
		Store: o.Name, Policy: o.Policy, ClientUUIDs: o.ClientUUIDs, Fields: o.Fields,
		Private: o.Private, ReadOnly: o.ReadOnly, Reserved: o.Reserved, Maintained: o.Maintained,
		Arrays: o.Arrays, Derived: o.derived(), Binaries: o.Binaries, Computed: o.Computed,
		HideForbidden: o.HideForbidden, Logger: o.Logger, Now: o.Now,
	}
}

// derived returns the fields that have values of other objects, but for arrays.
func (o *Options) derived() []string {
	var derived []string
	for _, m := range o.Aggregated {
		for _, a := range m.Aggregates {
			derived = append(derived, a.Property)
		}
	}
	for i := range o.Copies {
		derived = append(derived, o.Copies[i].Field)
	}
	return derived
}

// Store holds objects. It is safe for concurrent use. It is made of parts, each of which knows those that it needs:
//
//	reader   objects by their uuids, and the part of one that a caller receives
//	writer   changes of objects; checks, events, the interceptor, indexing and Claims serve it
//	lister   pages of objects, counts, iterations
type Store struct {
	opts     Options
	opened   opened
	core     *core
	checks   *checks
	indexing *indexing
	claims   *Claims // nil without unique fields
	reader   *reader
	writer   *writer
	lister   *lister

	aggregates *Aggregates // nil without aggregates
}

// opened is what Open made of the backend, which stores with other options share.
type opened struct {
	driver    driver.Store
	spec      []driver.Index      // all indexes
	arrays    []string            // that the driver may keep in chunks
	indexes   []query.Index       // of lists: every write has their keys
	state     *Indexes            // which are complete
	claims    *claimRecords       // nil without unique fields
	aggregate *aggregateRecords   // nil without aggregates
	expanding *semaphore.Weighted // of those that read objects for expansions
}

// Open opens the store in a backend, with the indexes that its mappings and its listing need. It builds those that are
// not complete. No other store with other indexes is open on the same records.
func Open(ctx context.Context, backend driver.Backend, o Options) (*Store, error) {
	return open(ctx, backend, o, false)
}

// OpenOnline is Open beside other stores on the same records, of this process or others, which may have other indexes.
// It builds none: what needs an index that is not complete is Unavailable until somebody has built it, see Indexes.
func OpenOnline(ctx context.Context, backend driver.Backend, o Options) (*Store, error) {
	return open(ctx, backend, o, true)
}

func open(ctx context.Context, backend driver.Backend, o Options, online bool) (*Store, error) {
	o.Indexes = query.Prepare(o.Indexes)
	made := opened{indexes: o.Indexes, expanding: semaphore.NewWeighted(maxExpandReaders)}
	if err := made.openRecords(ctx, backend, &o, online); err != nil {
		return nil, err
	}
	if len(o.Unique) > 0 {
		if err := made.openClaims(ctx, backend, o.Name); err != nil {
			return nil, err
		}
	}
	if len(o.Aggregated) > 0 {
		if err := made.openAggregates(ctx, backend, o.Name); err != nil {
			return nil, err
		}
	}
	return newStore(o, made, &peers{}), nil
}

// openRecords opens the driver's store of the objects.
func (m *opened) openRecords(ctx context.Context, backend driver.Backend, o *Options, online bool) (err error) {
	spec := newIndexing(o, m.indexes).spec(o)
	spec.Online = online
	if m.driver, err = backend.Open(ctx, spec); err != nil {
		return errs.Wrap(err, errs.KindOf(err), "opening store %s", o.Name)
	}
	m.arrays = spec.Arrays
	m.spec, m.state = spec.Indexes, newIndexes(m.driver, &spec, online)
	return nil
}

// openClaims opens the driver's store of the claims.
func (m *opened) openClaims(ctx context.Context, backend driver.Backend, name string) (err error) {
	if m.claims, err = openClaims(ctx, backend, name); err != nil {
		return errs.Wrap(err, errs.KindOf(err), "opening the claims of store %s", name)
	}
	return nil
}

func newStore(o Options, made opened, p *peers) *Store {
	o = o.normalized()
	r, rules := &reader{}, o.rules()
	if o.Interceptor != nil && o.InterceptsGet {
		rules.Amended = r.amendedBody
	}
	copier := &copier{store: o.Name, copies: o.Copies, peers: p}
	required := newRequirements(&o, p)
	links := newLinker(&o, p, copier, required)
	if links != nil {
		rules.Links = links
	}
	c := &core{
		name: o.Name, driver: made.driver, rules: access.New(rules), now: o.Now, log: o.Logger, peers: p, links: links,
	}
	x := newIndexing(&o, made.indexes)
	checked := newChecks(&o, c.rules, x, required)
	*r = reader{
		core: c, events: newEvents(&o, c.rules, x), expanding: made.expanding,
		interception: &interception{
			store: o.Name, arrays: o.Arrays, interceptor: o.Interceptor, rules: c.rules, checks: checked,
		},
	}
	claims, aggregates := newClaims(&o, c, made.claims, x), newAggregates(&o, made.aggregate)
	return &Store{
		opts: o, opened: made, core: c, checks: checked, indexing: x, claims: claims, reader: r, aggregates: aggregates,
		lister: newLister(&o, c, r, made.state),
		writer: &writer{
			core: c, reader: r, checks: checked, events: r.events, interception: r.interception, indexing: x,
			claims: claims, aggregates: aggregates,
			copier: copier, apart: o.apart(x.fields()),
			computed: o.Computed, locker: o.Locker, outbox: o.Outbox, noEvents: o.NoEvents,
			beforeDelete: o.BeforeDelete,
		},
	}
}

// WithOptions returns a store of the same records whose options differ. Its
// indexes are still those of Open. s is unchanged.
func (s *Store) WithOptions(change func(*Options)) *Store {
	o := s.opts
	change(&o)
	return newStore(o, s.opened, s.core.peers)
}

// Reconfigured returns a store of the same records with the options of another configuration, whose Name is the same. s
// is unchanged, and both can be used at once. If the indexes or unique fields differ, it opens the store in its backend
// once more, as OpenOnline does: what is new has to be built, and its claims are not trusted yet. After an error
// nothing has changed.
func (s *Store) Reconfigured(ctx context.Context, backend driver.Backend, o Options) (*Store, error) {
	now, made := s.opts, s.opened
	now.Policy, now.SearchRule, now.ClientUUIDs, now.Fields = o.Policy, o.SearchRule, o.ClientUUIDs, o.Fields
	now.Schema, now.Defaults, now.MaxSize = o.Schema, o.Defaults, o.MaxSize
	now.Private, now.ReadOnly, now.Reserved, now.Maintained = o.Private, o.ReadOnly, o.Reserved, o.Maintained
	now.Aggregated, now.References, now.Copies, now.CopiedFrom = o.Aggregated, o.References, o.Copies, o.CopiedFrom
	now.WholeArrays = o.WholeArrays
	now.Arrays, now.Binaries, now.Indexes, now.Unindexed = o.Arrays, o.Binaries, query.Prepare(o.Indexes), o.Unindexed
	now.Maps, now.Computed, now.Search, now.Searcher = o.Maps, o.Computed, o.Search, o.Searcher
	now.Unique, now.CompleteClaims, now.IndexBinaries = o.Unique, o.CompleteClaims, o.IndexBinaries
	now.KeyIndexes = o.KeyIndexes
	now.Interceptor, now.InterceptsGet, now.BeforeDelete = o.Interceptor, o.InterceptsGet, o.BeforeDelete
	now.SeenByRules = o.SeenByRules

	made.indexes = now.Indexes
	next := newIndexing(&now, made.indexes).spec(&now)
	if !sameIndexes(next.Indexes, made.spec) || !slices.Equal(next.Arrays, made.arrays) {
		if err := made.openRecords(ctx, backend, &now, true); err != nil {
			return nil, err
		}
	}
	switch {
	case len(now.Unique) == 0:
		made.claims = nil
	case !slices.Equal(constraintNames(s.opts.Unique), constraintNames(now.Unique)):
		if err := made.openClaims(ctx, backend, now.Name); err != nil {
			return nil, err
		}
	}
	if len(now.Aggregated) > 0 && made.aggregate == nil {
		if err := made.openAggregates(ctx, backend, now.Name); err != nil {
			return nil, err
		}
	}
	return newStore(now, made, &peers{}), nil
}

// constraintNames returns the names of constraints, sorted.
func constraintNames(unique [][]string) (names []string) {
	for _, c := range constraintsOf(unique) {
		names = append(names, c.name)
	}
	slices.Sort(names)
	return names
}

// sameIndexes reports whether indexes are the same, in any order.
func sameIndexes(a, b []driver.Index) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(i driver.Index) bool { return !slices.Contains(b, i) })
}

// drivers returns the driver's stores of the objects, of the claims and of the aggregates.
func (s *Store) drivers() []driver.Store {
	all := []driver.Store{s.core.driver}
	if s.opened.claims != nil {
		all = append(all, s.opened.claims.driver)
	}
	if s.opened.aggregate != nil {
		all = append(all, s.opened.aggregate.driver)
	}
	return all
}
