package config

import (
	"maps"
	"slices"
	"strings"

	"belfry/config/decode"
)

// Internal stores. They are never exposed.
const (
	SessionStore  = "Sessions"     // login sessions
	TokenStore    = "Tokens"       // tokens of mails and states of OAuth logins
	ContentStore  = "Contents"     // binary contents that wait for deletion
	RequestStore  = "Requests"     // idempotency records of requests over HTTP and the bus
	PositionStore = "LogPositions" // up to where listeners have handled the log of events
	SealKeyStore  = "SealKeys"     // the key that seals what clients send back
	QuotaStore    = "UploadQuotas" // bytes that callers have uploaded recently
)

func internalStores() []string {
	return []string{SessionStore, TokenStore, ContentStore, RequestStore, PositionStore, SealKeyStore, QuotaStore}
}

// Internal reports whether a store is internal: never exposed, and absent from the
// API documents.
func Internal(store string) bool { return slices.Contains(internalStores(), store) }

// KnownStores returns the names of the stores except the internal ones, sorted: those that a message can offer.
func (c *Config) KnownStores() []string { return slices.DeleteFunc(names(c.Stores), Internal) }

// DeclaredStores returns the names of the stores that the configuration has, sorted; Stores also has those that belfry
// adds.
func (c *Config) DeclaredStores() []string { return slices.Clone(c.declared) }

// completeStores adds the stores of users and idents and the internal stores when they
// are not in the file, and sets the defaults that depend on other sections.
func (c *Config) completeStores() {
	c.declared = names(c.Stores)
	for _, name := range append(internalStores(), c.Authentication.UserStore, c.Authentication.IdentStore) {
		if c.Stores[name] == nil {
			c.checkCaseConflict(name)
			c.Stores[name] = decode.Absent[Store](c.doc, "stores", name)
		}
	}
	for _, name := range names(c.Stores) {
		st, path := c.Stores[name], decode.Join("stores", name)
		if st.MaxObjectSize == 0 {
			st.MaxObjectSize = c.MaxObjectSize
		}
		if !c.doc.Valid(path + ".bus") {
			st.Bus = c.busDefault(name)
		}
		c.setLoginDefaults(st, path)
		c.setOwner(st, path)
	}
	c.hideIdents()
}

// hideIdents has the idents that are copied into users seen by the user alone, unless the configuration says who reads
// them: their uuids contain addresses.
func (c *Config) hideIdents() {
	users := c.Stores[c.Authentication.UserStore]
	m, copied := c.Stores[c.Authentication.IdentStore].Map[users.Name]
	_, known := users.Fields[m.Target]
	if !copied || known || m.Target == "" || slices.Contains(users.Private, m.Target) {
		return
	}
	users.Fields[m.Target] = Field{Read: "isOwner"}
}

// checkCaseConflict refuses a store that differs only in case from a built-in one.
func (c *Config) checkCaseConflict(builtin string) {
	for _, name := range names(c.Stores) {
		if strings.EqualFold(name, builtin) {
			c.doc.Problem(decode.Join("stores", name), "differs only in case from %s, which always exists", builtin)
		}
	}
}

// setOwner sets the default of the owner, and indexes objects by it. Users are their own owners.
func (c *Config) setOwner(st *Store, path string) {
	if st.Name == c.Authentication.UserStore {
		if st.Owner != "" {
			c.doc.Problem(path+".owner", "is not for the user store: every user is their own owner")
		}
		return
	}
	switch {
	case st.Owner == "" && st.Policy.Owner:
		st.Owner = "user"
	// Objects with owners that everyone may change would have them for nothing.
	case st.Owner != "" && !c.doc.IsSet(path+".policy"):
		st.Policy.Owner, st.OwnersByDefault = true, st.Name != c.Authentication.IdentStore
	}
	indexed := slices.ContainsFunc(st.Indexes,
		func(fields []string) bool { return slices.Equal(fields, []string{st.Owner}) })
	if st.Owner != "" && !indexed && !st.NeverRead(st.Owner) && st.Name != c.Authentication.IdentStore {
		st.Indexes = append(st.Indexes, []string{st.Owner})
	}
}

// OwnerField returns the property that holds the owner's uuid of a store's objects: the uuid itself in the user store,
// and "" where objects have no owner.
func (c *Config) OwnerField(store string) string {
	if store == c.Authentication.UserStore {
		return "uuid"
	}
	return c.Stores[store].Owner
}

// busDefault reports whether a store has operations over the bus by default. The
// stores that authentication trusts have to be opened explicitly.
func (c *Config) busDefault(name string) bool {
	return name != c.Authentication.IdentStore && !slices.Contains(internalStores(), name)
}

// setLoginDefaults sets the defaults of the stores of users and idents. A password
// is always private. With the owner policy, owners can only read their idents,
// because authentication trusts them.
func (c *Config) setLoginDefaults(st *Store, path string) {
	users, idents := c.Authentication.UserStore, c.Authentication.IdentStore
	if st.Name != users && st.Name != idents {
		return
	}
	if !c.doc.IsSet(path + ".policy") {
		st.Policy = Policy{Owner: true, Create: "false"}
	}
	if st.Name == users {
		st.Reserved = []string{"admin", "disabled"}
		if !slices.Contains(st.Private, "password") {
			st.Private = append(st.Private, "password")
		}
	}
	if st.Name == idents && st.Policy.Owner {
		st.Policy = Policy{Owner: true, Create: "false", Update: "false", Delete: "false"}
		if st.Expose != nil {
			c.restrictIdents(st.Expose, path+".expose.restrict")
		}
	}
	if st.Name == idents && !c.doc.IsSet(path+".map") {
		st.Map[users] = Mapping{Key: "user", Target: "idents", Fields: []string{"type"}, Cascade: true,
			Limit: defaultLimit, MaxBytes: defaultArrayBytes}
	}
}

// restrictIdents removes the routes that write idents, because the policy allows nobody to use them. It refuses a file
// that enables one, because its author expects the route to work.
func (c *Config) restrictIdents(e *Expose, path string) {
	for _, of := range []struct {
		key        string
		restricted *bool
	}{{"create", &e.Restrict.Create}, {"update", &e.Restrict.Update}, {"delete", &e.Restrict.Delete}} {
		if at := decode.Join(path, of.key); c.doc.IsSet(at) && !*of.restricted {
			c.doc.Problem(at, "idents are read by their owner and written by nobody, since logins trust them: remove "+
				"the key, or write rules: a policy with one for %s", of.key)
		}
		*of.restricted = true
	}
}

// names returns the sorted keys of a map.
func names[T any](m map[string]T) []string {
	return slices.Sorted(maps.Keys(m))
}

// Backend configures where stores keep their objects. Only the field that Type
// names is set.
type Backend struct {
	Type     string         `key:"type" of:"a backend" is:"one file mongodb dynamodb" default:"file"`
	File     *FileBackend   `variant:"file"`
	MongoDB  *MongoBackend  `variant:"mongodb"`
	DynamoDB *DynamoBackend `variant:"dynamodb"`
}

// FileBackend keeps objects in a folder.
type FileBackend struct {
	Folder string `key:"folder" is:"folder" default:"{data}/stores/{name}"`
	Cache  int64  `key:"cache" is:"size 1TiB"` // bytes of blocks; 0: according to the memory of the process
}

// MongoBackend names a database. The URL may hold a password.
type MongoBackend struct {
	URL      Secret `key:"url" is:"mongoURL" secret:"true" default:"mongodb://127.0.0.1:27017"`
	Database string `key:"database" is:"name" default:"belfry"`
	CA       string // as Config.CA
}

// DynamoBackend names a region or an custom endpoint. Credentials come
// from the AWS SDK's default chain.
type DynamoBackend struct {
	Region      string `key:"region" is:"nonempty"`
	Endpoint    string `key:"endpoint" is:"url http https"`
	TablePrefix string `key:"tablePrefix" default:"belfry_"`

	CA string // as Config.CA
}
