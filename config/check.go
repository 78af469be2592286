package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/internal/baseurl"
)

const sameAsBus = "is also the address of bus.listen; HTTP and NATS cannot share one"

// check validates what several keys must agree on.
func (c *Config) check() {
	if sameAddress(c.Listen, c.Bus.Listen) {
		c.doc.problem("listen", sameAsBus)
	}
	if key := c.metricsConflict(); key != "" {
		c.doc.problem("metrics.listen", "is also the address of %s", key)
	}
	if c.doc.isSet("proxyHeader") && len(c.Proxies) == 0 {
		c.doc.problem("proxyHeader", "has an effect with proxies alone: name the addresses of the proxies in proxies, or remove this key")
	}
	if c.Development {
		c.checkDevelopment()
	}
	c.checkHTTP()
	c.checkAuthentication()
	c.checkBackends()
	arrays := c.checkTargets()
	for _, name := range names(c.Stores) {
		c.checkStore(c.Stores[name], join("stores", name), arrays)
	}
	c.checkBinaries(arrays)
	c.checkBackup()
	c.checkRoutes()
}

const notLoopback = "is not an address of loopback, such as 127.0.0.1:8080, as `development: true` needs: replies show the rules"

// checkDevelopment refuses whatever lets others than programs on this machine send requests.
func (c *Config) checkDevelopment() {
	if !isLoopback(c.Listen) {
		c.doc.problem("listen", notLoopback)
	}
	if !isLocal(c.BaseURL) {
		c.doc.problem("baseURL", "is not on loopback, as `development: true` needs; remove one of them")
	}
	for key, set := range map[string]bool{"hosts": len(c.Hosts) > 0, "proxies": len(c.Proxies) > 0} {
		if set {
			c.doc.problem(key, "is for requests from other machines, `development: true` for those of this one; remove one of them")
		}
	}
}

func (c *Config) checkAuthentication() {
	a := &c.Authentication
	if a.UserStore == a.IdentStore {
		c.doc.problem("authentication.identStore", "is also the user store; users and idents need separate stores")
	}
	for _, name := range internalStores() {
		for key, chosen := range map[string]string{"userStore": a.UserStore, "identStore": a.IdentStore} {
			if chosen == name {
				c.doc.problem("authentication."+key, "is an internal store of belfry; choose another name")
			}
		}
		if c.Stores[name].Expose != nil {
			c.doc.problem(join("stores", name)+".expose", "this store is internal to belfry; remove the key")
		}
		if c.Stores[name].Bus {
			c.doc.problem(join("stores", name)+".bus", "this store is internal to belfry; remove the key")
		}
	}
	if _, err := a.PasskeysAt(c.BaseURL); err != nil {
		c.doc.problem("authentication.passkeys", "passkeys %v", err)
	}
	if a.Email == nil {
		return
	}
	if _, ok := c.Mailers[a.Email.Mailer]; !ok {
		c.doc.problem("authentication.providers.email.mailer", "no mailer with this name; %s", knownAre(names(c.Mailers)))
	}
	c.checkMailTexts(a.Email)
}

// checkBackends refuses two backends with the same folder.
func (c *Config) checkBackends() {
	owners := map[string]string{}
	for _, name := range names(c.Backends) {
		b := c.Backends[name].File
		if b == nil {
			continue
		}
		if other := owners[b.Folder]; other != "" {
			c.doc.problem(join("backends", name)+".folder", "is also the folder of backend %s", other)
		}
		owners[b.Folder] = name
	}
}

func (c *Config) checkStore(st *Store, path string, arrays arrays) {
	if _, ok := c.Backends[st.Backend]; !ok {
		c.doc.problem(path+".backend", "no backend with this name; %s", knownAre(names(c.Backends)))
	}
	if st.Name == c.Authentication.IdentStore && st.Expose != nil && st.Expose.List {
		c.doc.problem(path+".expose.list", "is not for the store of idents: a list would tell the addresses of all accounts")
	}
	for _, target := range names(st.Map) {
		c.checkMapping(st, target, join(path+".map", target), arrays)
	}
	c.checkFields(st, path+".fields", arrays)
	c.checkComputed(st, path+".computed", arrays)
	if array := arrays[st.Name][st.Owner]; array != "" {
		c.doc.problem(path+".owner", "is the array of a mapping; the owner needs a property of its own")
	}
	for _, index := range st.Indexes {
		for _, field := range index {
			property, at := topProperty(field), path+".indexes"
			switch {
			case st.NeverRead(property):
				c.doc.problem(at, "%s is private in %s; filtering by it would reveal its value", c.doc.display(at, property), st.Name)
			case strings.HasSuffix(field, "[]") && arrays[st.Name][property] != "":
				c.doc.problem(at, "%s is the array of a mapping: its elements are objects, which are not compared", c.doc.display(at, property))
			}
		}
	}
	c.checkUnique(st, path+".unique", arrays)
	c.checkSearch(st, path+".search")
	if e := st.Expose; e != nil && e.Events && !e.EventsAsList {
		switch at := path + ".expose.events"; {
		case e.Restrict.Get:
			c.doc.problem(at, "events contain what a get returns, which expose.restrict.get removes; remove one of them")
		case len(st.Intercept["get"]) > 0:
			c.doc.problem(at, "the interceptors of get can't be called for each event and client; remove the key or the interceptors")
		}
	}
	if users := c.Authentication.UserStore; st.Intercept["register"] != nil && st.Name != users {
		c.doc.problem(path+".intercept.register", "is called for the user store only, which is %s",
			c.doc.display("authentication.userStore", users))
	}
}

// checkUnique refuses properties whose values must not be guessed, or that can't be unique.
func (c *Config) checkUnique(st *Store, path string, arrays arrays) {
	for _, fields := range st.Unique {
		for _, property := range fields {
			switch {
			case st.NeverRead(property):
				c.doc.problem(path, "%s is private in %s; that a value is refused would reveal it", c.doc.display(path, property), st.Name)
			case st.Hides(property):
				c.doc.problem(path, "%s has a read rule in %s; that a value is refused would reveal it to those who may not read it: remove the rule, or the property here",
					c.doc.display(path, property), st.Name)
			case arrays[st.Name][property] != "":
				c.doc.problem(path, "%s is the array of a mapping, and arrays can't be unique", c.doc.display(path, property))
			}
		}
	}
	if len(st.Unique) > 0 && Internal(st.Name) {
		c.doc.problem(path, "is not for %s, which is belfry's own", st.Name)
	}
}

// checkFields refuses rules that contradict the short forms, and write rules for what
// belfry itself writes.
func (c *Config) checkFields(st *Store, path string, arrays arrays) {
	for _, property := range names(st.Fields) {
		at := join(path, property)
		if slices.Contains(st.Private, property) {
			c.doc.problem(at, "is private as well, which is short for a rule; remove one of them")
		}
		if st.Fields[property].Write == "" {
			continue
		}
		switch {
		case slices.Contains(st.Reserved, property):
			c.doc.problem(at+".write", "is not for a property that belfry alone sets; remove the rule")
		case arrays[st.Name][property] != "":
			c.doc.problem(at+".write", "is not for the array of a mapping, which alone writes it; remove the rule")
		case property == st.Owner:
			c.doc.problem(at+".write", "is not for the owner, which the server sets; remove the rule")
		}
	}
}

func (c *Config) checkMapping(st *Store, target, path string, arrays arrays) {
	m := st.Map[target]
	if c.Stores[target] == nil {
		c.doc.problem(path, "no store with this name; %s", knownAre(names(c.Stores)))
	} else if at := path + ".target"; slices.Contains(c.Stores[target].Reserved, m.Target) {
		c.doc.problem(at, "belfry alone sets %s of %s; choose another property", c.doc.display(at, m.Target), target)
	} else if c.Stores[target].NeverRead(m.Target) {
		c.doc.problem(at, "%s is private in %s; clients could not read the copies", c.doc.display(at, m.Target), target)
	}
	if m.SameOwner && c.Stores[target] != nil {
		c.checkSameOwner(st.Name, target, path+".sameOwner", m.Target)
	}
	if o := c.Stores[target]; o != nil && st.Name == c.Authentication.IdentStore && o.Fields[m.Target].Read == "" {
		c.doc.problem(path+".target", "holds the uuids of idents, which contain addresses; say who may read them: add a read rule for %s to stores.%s.fields",
			c.doc.display(path+".target", m.Target), target)
	}
	source := func(at, property string) {
		displayed := c.doc.display(at, property)
		if arrays[st.Name][property] != "" {
			c.doc.problem(at, "%s is an array that a mapping maintains; copies of it would not be updated", displayed)
		}
		switch {
		case st.NeverRead(property):
			c.doc.problem(at, "%s is private in %s and cannot be mapped", displayed, st.Name)
		case !st.ReadByAll(property) && c.Stores[target] != nil && c.Stores[target].Fields[m.Target].Read == "":
			c.doc.problem(at, "%s has a read rule in %s, which the copies don't follow; say who may read them: add a read rule for %s to stores.%s.fields",
				displayed, st.Name, c.doc.display(path+".target", m.Target), target)
		}
	}
	source(path+".key", m.Key)
	for _, field := range m.Fields {
		source(path+".fields", field)
	}
}

// checkSameOwner refuses a mapping by owners between stores of which one has none. The owner of a target
// must be in its events: by it a cascade decides what to delete. An entry tells that both owners are the same.
func (c *Config) checkSameOwner(source, target, at, array string) {
	for _, name := range slices.Compact([]string{source, target}) {
		switch owner := c.OwnerField(name); {
		case owner == "":
			c.doc.problem(at, "the objects of %s have no owner; add owner to that store, with the property that holds the owner's uuid, or remove this key", name)
		case name == target && c.Stores[name].NeverRead(owner): // below
		case c.Stores[name].Hides(owner) && c.Stores[target].Fields[array].Read == "":
			c.doc.problem(at, "not everyone may read %s in %s, and an entry tells it; say who may read the entries: add a read rule for %s to stores.%s.fields", owner, name, array, target)
		}
	}
	if owner := c.OwnerField(target); owner != "" && c.Stores[target].NeverRead(owner) {
		c.doc.problem(at, "%s never leaves the server in %s: whose objects to delete with a target could not be decided; make it readable or remove this key", owner, target)
	}
}

// arrays holds, for each store and property that is a mapping's target, the path of
// the mapping.
type arrays map[string]map[string]string

// checkTargets refuses two mappings into one array and returns all arrays.
func (c *Config) checkTargets() arrays {
	all := arrays{}
	for _, name := range names(c.Stores) {
		for _, target := range names(c.Stores[name].Map) {
			property := c.Stores[name].Map[target].Target
			if property == "" {
				continue
			}
			if all[target] == nil {
				all[target] = map[string]string{}
			}
			path := join(join("stores", name)+".map", target)
			if other := all[target][property]; other != "" {
				at := path + ".target"
				c.doc.problem(at, "%s of %s is already the target of %s", c.doc.display(at, property), target, other)
				continue
			}
			all[target][property] = path
		}
	}
	return all
}

func (c *Config) checkBinaries(arrays arrays) {
	for _, name := range names(c.Binaries) {
		for _, store := range names(c.Binaries[name].Map) {
			at := join(join("binaries", name)+".map", store)
			st := c.Stores[store]
			if st == nil {
				c.doc.problem(at, "no store with this name; %s", knownAre(names(c.Stores)))
				continue
			}
			if slices.Contains(internalStores(), store) || store == c.Authentication.IdentStore {
				c.doc.problem(at, "belfry manages the objects of this store; files cannot be attached to them")
				continue
			}
			for _, property := range c.Binaries[name].Map[store] {
				if arrays[store][property] != "" || st.NeverRead(property) || st.Computed[property] != "" || slices.Contains(st.ReadOnly, property) || slices.Contains(st.Reserved, property) || property == st.Owner {
					c.doc.problem(at, "%s of %s is mapped, computed, private or read-only; files cannot be attached there", c.doc.display(at, property), store)
				}
			}
		}
	}
}

// route is a path and its owner; displayed is the path in messages.
type route struct{ url, displayed, owner string }

// checkRoutes refuses two owners of one path.
func (c *Config) checkRoutes() {
	var taken []route
	for _, url := range [...]string{"/auth", "/healthz", "/livez", "/readyz", "/metrics", "/events", "/batch", "/openapi.json", "/asyncapi.json", "/console"} {
		taken = append(taken, route{url, url, "belfry itself"})
	}
	claim := func(owner, url string) {
		path := owner + ".expose.url"
		displayed := c.doc.display(path, url)
		if i := slices.IndexFunc(taken, func(r route) bool { return overlap(r.url, url) }); i >= 0 {
			c.doc.problem(path, "%s overlaps with %s of %s", displayed, taken[i].displayed, taken[i].owner)
			return
		}
		taken = append(taken, route{url, displayed, owner})
	}
	for _, name := range names(c.Binaries) {
		claim(join("binaries", name), c.Binaries[name].URL)
	}
	taken = append(taken, route{"/binary", "/binary", "the binary services"})
	for _, name := range names(c.Stores) {
		if e := c.Stores[name].Expose; e != nil {
			claim(join("stores", name), e.URL)
		}
	}
	c.placePages(taken)
	c.checkBasePath(taken)
}

// checkBasePath refuses a path of baseURL that is the beginning of another path as well: a request is served with the path of
// baseURL, as some proxies pass it on, and without, as others do, so it would have two meanings.
func (c *Config) checkBasePath(taken []route) {
	prefix := baseurl.Parse(c.BaseURL).Path()
	if prefix == "" {
		return
	}
	for name, path := range c.Pages.Paths {
		taken = append(taken, route{path, path, "the page " + name})
	}
	slices.SortFunc(taken, func(a, b route) int { return strings.Compare(a.url, b.url) })
	for _, r := range taken {
		if r.url != "/" && overlap(r.url, prefix) {
			c.doc.problem("baseURL", "its path %s overlaps with %s of %s, and requests are served with that path and without; choose another path", c.doc.display("baseURL", prefix), r.displayed, r.owner)
			return
		}
	}
	c.checkRedirectsBelow(prefix)
	if c.Static == nil {
		return
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(prefix, "/"), "/")
	if _, err := os.Lstat(filepath.Join(c.Static.Folder, first)); err == nil {
		c.doc.problem("baseURL", "its path %s begins as a file of static.folder, %s, and requests are served with that path and without; choose another path, or rename the file", c.doc.display("baseURL", prefix), c.doc.display("baseURL", first))
	}
}

// checkRedirectsBelow refuses redirects with the path of baseURL: they are below it, and would have it twice.
func (c *Config) checkRedirectsBelow(prefix string) {
	a := &c.Authentication
	for key, target := range map[string]string{
		"successRedirect": a.SuccessRedirect, "failureRedirect": a.FailureRedirect, "registerRedirect": a.RegisterRedirect, "recoveryRedirect": a.RecoveryRedirect,
		"secondFactorRedirect": a.SecondFactorRedirect, "mailLoginRedirect": a.MailLoginRedirect, "addressRedirect": a.AddressRedirect, "accountRedirect": a.AccountRedirect,
	} {
		path := "authentication." + key
		if within, ok := baseurl.Parse(c.BaseURL).Strip(target); ok && c.doc.isSet(path) {
			c.doc.problem(path, "paths are below baseURL, whose path is %s: write %s, or the whole URL", c.doc.display("baseURL", prefix), c.doc.display(path, within))
		}
	}
}

// isLoopback reports whether only programs on this machine can connect to an address, host:port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "localhost" {
		return err == nil
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// isLocal reports whether a URL is that of the machine itself.
func isLocal(base string) bool {
	u, err := url.Parse(base)
	return err == nil && isLoopback(net.JoinHostPort(u.Hostname(), "80"))
}
