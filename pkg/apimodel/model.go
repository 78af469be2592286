// Package apimodel describes the API of a configuration: stores with the schemas of
// their objects, logins, files and events. The OpenAPI and AsyncAPI documents are
// generated from it. It contains no secrets, and is deterministic.
package apimodel

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"belfry/config"
	"belfry/internal/ordered"
	"belfry/pkg/account/method/about"
	"belfry/pkg/computed"
	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

// Contract is the API of a configuration.
type Contract struct {
	Version string   // of belfry
	BaseURL string   // URL at which clients reach it
	Bus     []string // addresses at which programs reach the bus; empty if it has no port
	Stores  []*Store // by name, without belfry's own
	Login   Login
	Files   []Files          // by name
	Events  bool             // browsers receive events
	Routes  config.Documents // the documents that are routes

	// Names are the components that stores use; others choose theirs beside them.
	Names Names
}

// Login describes how clients authenticate.
type Login struct {
	Providers []string // besides email
	Email     bool
	Users     *Store
	Cookie    string // the name of the sessions' cookie
	Secure    bool   // cookies are for https only
	Uniform   bool   // an unknown login is like a wrong password

	Methods []about.Configured // by which users authenticate

	Deletion      bool // users may delete their accounts
	Passkeys      bool
	MailLogin     bool // users can log in by a code or a link of a mail
	Applications  bool // may log users in with a code
	KeepsTokens   bool // of a provider
	PostsCallback bool // a provider sends browsers to the callback by POST

	Profile Profile // what users edit of themselves on the page of their account
}

// Files is a binary service.
type Files struct {
	Name, ID string
	URL      string
	Restrict config.BinaryRestrict
	Types    []string // that uploads may have; nil: any
	Thumbs   []string // sizes of thumbnails
	MaxSize  int64
	Signed   bool                             // readers are redirected to the storage
	Places   map[string][]string              // nil: any property
	Limits   map[string]config.FileProperties // of the properties that have any, by store
	Stores   []string                         // whose objects may have files
}

// Store is the public side of a store.
type Store struct {
	Name, ID     string
	Expose       *config.Expose  // nil if it has no routes
	Owner        string          // the property with the uuid of the user who created the object; "" for none
	NeedsUser    map[string]bool // operations that are only for logged-in users
	ServerUUIDs  bool            // the server makes the uuids of new objects
	OwnersGet    bool            // the owner of an object may get it
	Rules        map[string]bool
	Interceptors map[string][]config.Interceptor
	Indexes      [][]string
	Search       []string // properties whose text lists find objects by
	MaxSize      int64
	Bus          bool // its operations are offered on the bus
	Arrays       []Array
	Keys         []Key    // properties that name objects of other stores
	Expand       []Key    // those of Keys that can be expanded
	ReadOnly     []string // properties that programs set, and clients see
	Reserved     []string // properties that only belfry sets, and clients see
	Computed     []Computed
	Unique       [][]string // properties whose values are unique
	Refused      []string   // the ReadOnly ones for which a client's other value is refused
	Hideable     []string   // properties that some clients see and others don't
	WriteOnly    []string   // properties that clients set and nobody sees
	Files        []string   // properties that hold records of files

	Shape
}

// Array is a mapped array: a property with copies of objects of another store.
type Array struct {
	Name    string
	Source  string
	Key     string
	Fields  []string
	Cascade bool
	Some    bool // the mapping has a condition: not every object that refers to the target has an entry
}

// Of returns the contract of a configuration, with the methods by which its users authenticate.
func Of(c *config.Config, methods []about.Configured, version, baseURL string) (*Contract, error) {
	k := &Contract{Version: version, BaseURL: strings.TrimRight(baseURL, "/"), Bus: busAddresses(c), Events: true,
		Routes: c.Documents, Names: Names{}}
	for _, name := range OwnComponents() {
		k.Names.Take(name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stores)) {
		if !config.Internal(name) {
			k.Stores = append(k.Stores, storeOf(c, c.Stores[name], k.Names.TakeWith(Identifier(name), suffixes()...)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Binaries)) {
		k.Files = append(k.Files, filesOf(c, name))
	}
	for _, s := range k.Stores {
		if err := s.load(c.Stores[s.Name], k.Names); err != nil {
			return nil, err
		}
	}
	for _, s := range k.Stores {
		s.Expand = s.expandable(c)
		s.shape(c.Stores[s.Name], k)
	}
	k.Login = Login{
		Methods: methods,
		Cookie:  c.Authentication.Cookie, Email: c.Authentication.Email != nil,
		Users:  k.Store(c.Authentication.UserStore),
		Secure: strings.HasPrefix(k.BaseURL, "https:"), Applications: len(c.Authentication.Redirects) > 0,
		Deletion: c.Authentication.Deletion.Enabled, Passkeys: c.Authentication.Passkeys != nil,
		KeepsTokens:   len(c.Authentication.Keeping()) > 0,
		PostsCallback: c.Authentication.Site("apple") != nil && c.Authentication.Apple.ClientID != "",
		Providers: slices.DeleteFunc(c.Authentication.Providers(),
			func(name string) bool { return name == "email" }),
	}
	k.Login.Profile = k.profile(c)
	if e := c.Authentication.Email; e != nil {
		k.Login.Uniform = e.UniformErrors
		k.Login.MailLogin = e.Login.Code || e.Login.Link
	}
	return k, nil
}

// Store returns the store with a name, or nil.
func (k *Contract) Store(name string) *Store {
	for _, s := range k.Stores {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func storeOf(c *config.Config, s *config.Store, id string) *Store {
	p := s.Policy
	out := &Store{
		Name: s.Name, ID: id, Expose: s.Expose, Owner: s.Owner, ServerUUIDs: s.ServerUUIDs(), Indexes: s.Indexes,
		Search: s.Search.Fields, MaxSize: s.MaxObjectSize,
		Interceptors: s.Intercept, Bus: s.Bus, Unique: s.Unique, OwnersGet: p.Owner && p.Get == "",
		NeedsUser: map[string]bool{"create": p.Owner && p.Create == "", "update": p.Owner && p.Update == "",
			"delete": p.Owner && p.Delete == ""},
		Rules: map[string]bool{
			"create": p.Owner || p.Create != "", "get": p.Owner || p.Get != "", "update": p.Owner || p.Update != "",
			"delete": p.Owner || p.Delete != "", "list": p.Owner || p.List != "" || p.Get != "",
		},
	}
	out.ReadOnly = slices.DeleteFunc(slices.Clone(s.ReadOnly),
		func(property string) bool { return slices.Contains(s.Reserved, property) })
	out.Reserved = slices.DeleteFunc(slices.Clone(s.Reserved), s.NeverRead)
	types, _ := computed.Compile(c, s)
	for _, property := range slices.Sorted(maps.Keys(s.Computed)) {
		if !s.NeverRead(property) {
			out.Computed = append(out.Computed, Computed{property, s.Computed[property], types.Type(property)})
		}
	}
	for _, property := range slices.Sorted(maps.Keys(s.Fields)) {
		if !s.ReadByAll(property) && !s.NeverRead(property) {
			out.Hideable = append(out.Hideable, property)
		}
		switch closed := strings.TrimSpace(s.Fields[property].Write) == "false"; {
		case closed:
			out.ReadOnly, out.Refused = append(out.ReadOnly, property), append(out.Refused, property)
		case s.NeverRead(property):
			out.WriteOnly = append(out.WriteOnly, property)
		}
	}
	for _, source := range slices.Sorted(maps.Keys(c.Stores)) {
		if m, ok := c.Stores[source].Map[s.Name]; ok {
			out.Arrays = append(out.Arrays,
				Array{m.Target, source, m.Key, m.Fields, m.Cascade, m.When != "" || m.SameOwner})
		}
	}
	for _, target := range slices.Sorted(maps.Keys(s.Map)) {
		out.Keys = append(out.Keys, keyOf(s, s.Map[target].Key, target))
	}
	for _, property := range slices.Sorted(maps.Keys(s.References)) {
		key := keyOf(s, property, s.References[property].Store)
		if !slices.Contains(out.Keys, key) && !s.NeverRead(property) {
			out.Keys = append(out.Keys, key)
		}
	}
	for _, service := range slices.Sorted(maps.Keys(c.Binaries)) {
		out.Files = append(out.Files, c.Binaries[service].Map[s.Name].Names...)
	}
	return out
}

func filesOf(c *config.Config, name string) Files {
	b := c.Binaries[name]
	f := Files{
		Name: name, ID: Identifier(name), URL: b.URL, Restrict: b.Restrict, Types: b.Types, MaxSize: b.MaxSize,
		Signed: b.S3 != nil && b.S3.Presign > 0, Places: b.Places(), Limits: b.Map,
	}
	for _, size := range b.Thumbs {
		f.Thumbs = append(f.Thumbs, size.String())
	}
	for _, store := range slices.Sorted(maps.Keys(c.Stores)) {
		s := c.Stores[store]
		open := s.Expose != nil || s.Ruled() || len(b.Map[store].Names) > 0
		if open && !config.Internal(store) && store != c.Authentication.IdentStore {
			f.Stores = append(f.Stores, store)
		}
	}
	return f
}

// busAddresses returns the host and port of the bus; nil if it has no port.
func busAddresses(c *config.Config) []string {
	if c.Bus.Listen != "" {
		host, port, err := net.SplitHostPort(c.Bus.Listen)
		if err != nil || port == "0" {
			return nil
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			if base, err := url.Parse(c.BaseURL); err == nil {
				host = base.Hostname()
			}
		}
		return []string{"nats://" + net.JoinHostPort(host, port)}
	}
	return c.Bus.URL
}

// load reads the schema file of a store.
func (s *Store) load(c *config.Store, names Names) error {
	if c.Schema == "" {
		return nil
	}
	data, err := schema.Read(c.Schema)
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "the schema %s of %s can't be read", c.Schema, s.Name)
	}
	return s.port(c, data, names)
}

// defaults are the properties of new objects that the server sets if they are absent.
func (s *Store) defaults() []string {
	if s.compiled == nil {
		return nil
	}
	return s.compiled.Defaults()
}

// Component is the reference to a schema of the document.
func Component(name string) string { return "#/components/schemas/" + name }

// Ref is a schema that refers to a component.
func Ref(name string) *ordered.Object { return ordered.Of("$ref", Component(name)) }
