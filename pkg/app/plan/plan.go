// Package plan compiles a configuration: its schemas, rules, mappings and computed properties, and the settings that
// follow from them. Other packages open and serve a plan. It opens only the files that the configuration names.
package plan

import (
	"crypto/x509"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/record"
	"belfry/pkg/api/pages"
	"belfry/pkg/app/certificate"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/pkg/store/schema"
)

func readSeed(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

// Plan is a configuration whose schemas, policies and mappings are compiled. Only files, networks and servers
// can still fail.
type Plan struct {
	Config   *config.Config
	Stores   []store.Options // without the options that only a running belfry has
	Mappings []store.Mapping
	Open     map[string][]string // store → offered operations without a policy
	Titles   map[string][]string // store → properties whose first text names an object to people
	Auth     account.Options     // without the options that only a running belfry has
	Pages    *pages.Templates
	Logo     *pages.Logo // nil: none
	Accent   []byte      // rules of the pages' style sheet for the configured color

	Roots *x509.CertPool    // with the authorities of the key ca; nil: the system's
	web   http.RoundTripper // for requests to other servers, which trusts Roots; nil: http.DefaultTransport

	Files       contents                  // the files from which it was compiled; nil for a command
	Certificate *certificate.Pair         // nil: TLS does not use files
	Opened      map[string]driver.Backend // by a command, while it has the stores open
}

// Check compiles the policies and schemas of a configuration and reads the configuration file of its bus.
// It returns config.Problems for settings that are invalid or can't be read.
func Check(c *config.Config) error {
	_, err := Compile(c)
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return err
	}
	if err := (embedded.Options{Config: c.Bus.Config}).Check(); err != nil {
		problems = append(problems, c.Problem("bus.config", "%s", strings.TrimPrefix(err.Error(), "bus.config: ")))
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// Warnings are the doubtful settings of a configuration that Check accepts.
func Warnings(c *config.Config) (all []string) {
	for _, w := range (embedded.Options{Config: c.Bus.Config}).Warnings() {
		all = append(all, c.Bus.Config+": "+w.Error())
	}
	if files := c.HTTP.TLS; files != nil {
		if pair, err := certificate.Load(files.Cert, files.Key); err == nil {
			all = append(all, pair.Warnings(PublicName(c), time.Now())...)
		}
	}
	for _, doubtful := range CheckNames(c).doubtful {
		all = append(all, doubtful.Error())
	}
	all = append(all, Unjudged(c)...)
	all = append(all, RefusedUUIDs(c)...)
	all = append(all, WritableIdents(c)...)
	if e := c.Authentication.Email; e != nil && !c.HasMailer(e.Mailer) {
		all = append(all,
			"authentication.providers.email: no mailer is configured, so mails are written into a folder, not sent: "+
				"add mailers: {"+e.Mailer+
				": {type: smtp, ...}}, or {type: file} to confirm this")
	}
	for _, name := range stayingObjects(c) {
		all = append(all, "stores."+name+
			": its objects stay when their owner deletes the account (authentication.deletion): "+
			deleteWithOwner(c.Stores[name], c.Authentication.UserStore)+" to delete them as well")
	}
	return all
}

// deleteWithOwner says what to change in a store so that its objects are deleted with their owner.
func deleteWithOwner(s *config.Store, users string) string {
	reference, declared := s.References[s.Owner]
	switch m, mapped := s.Map[users]; {
	case declared && reference.Store == users:
		return "write onDelete: cascade in references." + s.Owner
	case mapped && m.Key == s.Owner:
		return "write cascade: true in map." + users
	default:
		return "add references: {" + s.Owner + ": {store: " + users + ", onDelete: cascade}}"
	}
}

// stayingObjects returns the stores whose objects have owners and stay without them, if the configuration has the
// deletion of accounts. Other stores say by onDelete what becomes of them.
func stayingObjects(c *config.Config) (all []string) {
	if d := c.Authentication.Deletion; !d.Enabled || !d.Configured {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		m, mapped := s.Map[c.Authentication.UserStore]
		stay := s.OnDelete(s.Owner) == config.OnDeleteKeep && (!mapped || !m.Cascade || m.Key != s.Owner)
		if s.Owner != "" && name != c.Authentication.IdentStore && stay {
			all = append(all, name)
		}
	}
	return all
}

// CompileFor is Compile for a serving process with some roles; none: all roles.
func CompileFor(c *config.Config, roles []string) (*Plan, error) {
	files := readFiles(c) // before they are compiled, so that a file that changes in between differs at the next reload
	p, err := Compile(c)
	if err != nil {
		return nil, err
	}
	if db := p.Auth.Places; db != nil {
		// The file is too large to be read twice.
		files["authentication.places ("+c.Authentication.Places+")"] = db.Sum()
	}
	p.Files = files
	return p, checkRoles(c, roles)
}

// Compile compiles a configuration. It returns config.Problems for invalid settings.
func Compile(c *config.Config) (*Plan, error) {
	p := &Plan{Config: c, Open: map[string][]string{}, Titles: map[string][]string{}}
	var problems, others config.Problems
	var compiling sync.WaitGroup // what does not depend on the stores
	compiling.Go(func() {
		others = slices.Concat(p.compileTrust(), p.compileAuth(), p.compilePages(), p.compileBranding(),
			p.compileHTTP(), p.checkPaths())
	})
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[name]
		options, found := p.compileStore(s)
		problems = append(problems, found...)
		p.Stores = append(p.Stores, options)
		for _, target := range slices.Sorted(maps.Keys(s.Map)) {
			m, found := p.compileMapping(s, target)
			problems = append(problems, found...)
			p.Mappings = append(p.Mappings, m)
		}
	}
	problems = append(problems, p.followDerived()...)
	problems = append(problems, p.checkOrdered()...)
	compiling.Wait()
	problems = append(problems, others...)
	if len(problems) > 0 {
		return nil, problems
	}
	p.linkAuth()
	p.linkReferences()
	p.followCopies()
	p.placeBinaries()
	p.placeOwn()
	for i := range p.Stores {
		o := &p.Stores[i]
		o.WholeArrays = c.LargeArrays == "whole"
		if c.Backends[c.Stores[o.Name].Backend].File == nil {
			o.MoreChunks = func() bool { return false } // a running belfry knows when others read them
		}
		for _, m := range p.Mappings {
			if m.Source == o.Name {
				o.Maps = append(o.Maps, m)
			}
			if m.Target == o.Name && m.Array != "" {
				o.Arrays = append(o.Arrays, m.Array)
			}
			if m.Target == o.Name && len(m.Aggregates) > 0 {
				o.Aggregated = append(o.Aggregated, m)
			}
		}
	}
	return p, nil
}

func (p *Plan) compileStore(s *config.Store) (store.Options, config.Problems) {
	c, at := p.Config, "stores."+s.Name
	var problems config.Problems
	o := store.Options{
		Name: s.Name, Private: s.Private, ReadOnly: s.ReadOnly, Reserved: s.Reserved, MaxSize: int(s.MaxObjectSize),
		ClientUUIDs: s.ClientUUIDs, Unindexed: c.Development,
	}
	// Uuids of idents are addresses, so they can be guessed.
	o.HideForbidden = s.Name == c.Authentication.IdentStore
	o.Unique, o.Search, o.Maintained = s.Unique, s.Search.Fields, maintainedFields(c, s.Name)
	if s.Name == c.Authentication.UserStore {
		o.SeenByRules = record.SetReserved
	}
	// Rules compare properties of users: with the name of another user, one could do what only that user may.
	o.CompleteClaims = s.Name == c.Authentication.UserStore || s.Name == c.Authentication.IdentStore
	o.References, o.Copies = compileReferences(s)
	computed, found := p.compileComputed(s)
	problems = append(problems, found...)
	o.Computed = computed
	for _, fields := range s.Indexes {
		o.Indexes = append(o.Indexes, query.NewIndex(fields))
	}
	compiledSchema, err := LoadSchema(s)
	switch {
	case err != nil:
		problems = append(problems, c.Problem(at+".schema", "%v", err))
	case compiledSchema != nil:
		o.Schema = compiledSchema
		problems = append(problems, p.checkMaintained(s, compiledSchema, computed)...)
		if s.Defaults {
			o.Defaults = compiledSchema
			problems = append(problems, p.checkUniqueDefaults(s, compiledSchema)...)
		}
	}
	p.Titles[s.Name] = titleOf(s, compiledSchema)
	rules := rulesOf(c, s)
	unlisted := p.checkLinked(s)
	problems = append(problems, unlisted...)
	if s.Ruled() {
		compiled, found := policy.Compile(rules)
		for _, f := range found {
			problems = append(problems,
				c.Problem(at+".policy."+string(f.Op), "in the expression at %d:%d: %s", f.Line, f.Column, f.Message))
		}
		o.Policy = compiled
		if len(unlisted) == 0 {
			problems = append(problems, p.compileSearch(s, &o)...)
		}
	}
	fields := make(map[string]policy.FieldRule, len(s.Fields))
	for name, f := range s.Fields {
		fields[name] = policy.FieldRule(f)
	}
	compiled, wrong := policy.CompileFields(rules, fields)
	for _, f := range wrong {
		problems = append(problems,
			c.Problem(at+".fields."+f.Field+"."+f.Access, "in the expression at %d:%d: %s", f.Line, f.Column,
				f.Message))
	}
	o.Fields = compiled
	if s.Expose != nil && s.Expose.List && o.Policy != nil {
		o.Indexes = append(o.Indexes, ruleIndexes(s, o)...)
	}
	if len(problems) == 0 {
		p.noteOpen(s, o.Policy)
	}
	return o, problems
}

// compileSearch restricts searches to the objects that the caller may list.
func (p *Plan) compileSearch(s *config.Store, o *store.Options) config.Problems {
	if len(s.Search.Fields) == 0 || s.Search.Shared || o.Policy == nil || !o.Policy.NeedsObject(policy.List) {
		return nil
	}
	selector, problem := o.Policy.Selector(policy.List)
	if problem != nil {
		return config.Problems{p.Config.Problem("stores."+s.Name+".search",
			"the rule of %s has a part at %d:%d that an index of words does not support, so a search would reveal "+
				"texts that the caller may not list: compare properties of the object with properties of the user "+
				"there by ==, != or in, or set statistics: shared to accept this",
			problem.Op, problem.Line, problem.Column)}
	}
	o.SearchRule = selector
	return nil
}

// checkUniqueDefaults refuses defaults for unique values: the second object that is created without the value would be
// refused for a value that its client did not send.
func (p *Plan) checkUniqueDefaults(s *config.Store, compiled *schema.Schema) (problems config.Problems) {
	defaults := object.Object{}
	compiled.Fill(defaults)
	for _, fields := range s.Unique {
		if !slices.ContainsFunc(fields,
			func(name string) bool { return defaults[name] == nil || string(defaults[name]) == "null" }) {
			problems = append(problems, p.Config.Problem("stores."+s.Name+".unique",
				"the schema has a default for %s, but only one object could have this value: remove the default",
				strings.Join(fields, " and ")))
		}
	}
	return problems
}

// maxIndexFields is the maximum number of fields of an index.
const maxIndexFields = 4

// ruleIndexes returns the indexes by which lists find the objects that a rule allows without reading the rest. They
// have the values that the rule names, such as the owner, alone and before the fields of each declared index.
func ruleIndexes(s *config.Store, o store.Options) []query.Index {
	named := o.Policy.ValueFields(policy.List)
	if slices.ContainsFunc(named,
		func(field string) bool { return s.NeverRead(field) || strings.HasPrefix(field, "_") }) {
		return nil // a filter by a field reveals its value
	}
	var added []query.Index
	for _, field := range named {
		for _, declared := range append([][]string{nil}, s.Indexes...) {
			fields := append([]string{field}, slices.DeleteFunc(slices.Clone(declared),
				func(name string) bool { return strings.TrimPrefix(name, "-") == field })...)
			known := slices.ContainsFunc(slices.Concat(o.Indexes, added),
				func(i query.Index) bool { return slices.Equal(i.Fields, fields) })
			if field != "uuid" && query.IsTopLevel(field) && !known && len(fields) <= maxIndexFields {
				added = append(added, query.NewIndex(fields))
			}
		}
	}
	return added
}

// noteOpen records the offered operations that no policy restricts.
func (p *Plan) noteOpen(s *config.Store, rules *policy.Policy) {
	for _, op := range []policy.Op{policy.Create, policy.Get, policy.Update, policy.Delete, policy.List} {
		if isOffered(p.Config, s, op) && (rules == nil || rules.Open(op)) {
			p.Open[s.Name] = append(p.Open[s.Name], string(op))
		}
	}
}

// BusOptions returns the options of the configured bus.
func (p *Plan) BusOptions() (bus.Options, error) {
	b := p.Config.Bus
	roots, err := certificate.Trusted(b.ExtraCA)
	if err != nil {
		return bus.Options{}, err
	}
	o := bus.Options{
		Name: "belfry", URL: strings.Join(b.URL, ","),
		Auth: bus.Auth{Credentials: b.Credentials, User: b.User, Password: string(b.Password),
			Token: string(b.Token)},
		TLS:    bus.TLS{CA: b.TLS.CA, Cert: b.TLS.Cert, Key: b.TLS.Key, RootCAs: roots},
		Events: bus.Limits(b.Events),

		Replicas: b.Replicas,
	}
	if b.NKey != "" {
		seed, err := readSeed(b.NKey)
		if err != nil {
			return o, errs.Wrap(err, errs.Invalid, "bus.nkey: can't read %s", b.NKey)
		}
		o.Auth.NKeySeed = seed
	}
	return o, nil
}

// UnknownStore is the error for the name of a store that is not configured.
func UnknownStore(c *config.Config, name string) error {
	return errs.New(errs.Invalid, "no store %q is configured; there are %s", name,
		strings.Join(c.KnownStores(), ", "))
}
