package config

import (
	"slices"

	"belfry/config/decode"
)

const sameAsBus = "is also the address of bus.listen; HTTP and NATS cannot share one"

// check validates what several keys must agree on.
func (c *Config) check() {
	if sameAddress(c.Listen, c.Bus.Listen) {
		c.doc.Problem("listen", sameAsBus)
	}
	if key := c.metricsConflict(); key != "" {
		c.doc.Problem("metrics.listen", "is also the address of %s", key)
	}
	if c.doc.IsSet("proxyHeader") && len(c.Proxies) == 0 {
		c.doc.Problem("proxyHeader",
			"has an effect with proxies alone: name the addresses of the proxies in proxies, or remove this key")
	}
	if c.Development {
		c.checkDevelopment()
	}
	c.checkHTTP()
	c.checkAuthentication()
	c.checkBackends()
	maintained := c.checkMaintained()
	for _, name := range names(c.Stores) {
		c.checkStore(c.Stores[name], decode.Join("stores", name), maintained)
	}
	c.checkBinaries(maintained)
	c.checkBackup()
	c.checkRoutes()
}

const notLoopback = "is not an address of loopback, such as 127.0.0.1:8080, as `development: true` needs: replies " +
	"show the rules"

// checkDevelopment refuses settings that let programs on other machines send requests.
func (c *Config) checkDevelopment() {
	if !isLoopback(c.Listen) {
		c.doc.Problem("listen", notLoopback)
	}
	if !isLocal(c.BaseURL) {
		c.doc.Problem("baseURL", "is not on loopback, as `development: true` needs; remove one of them")
	}
	for key, set := range map[string]bool{"hosts": len(c.Hosts) > 0, "proxies": len(c.Proxies) > 0} {
		if set {
			c.doc.Problem(key,
				"is for requests from other machines, `development: true` for those of this one; remove one of them")
		}
	}
}

func (c *Config) checkAuthentication() {
	a := &c.Authentication
	if a.UserStore == a.IdentStore {
		c.doc.Problem("authentication.identStore", "is also the user store; users and idents need separate stores")
	}
	for _, name := range internalStores() {
		for key, chosen := range map[string]string{"userStore": a.UserStore, "identStore": a.IdentStore} {
			if chosen == name {
				c.doc.Problem("authentication."+key, "is an internal store of belfry; choose another name")
			}
		}
		if c.Stores[name].Expose != nil {
			c.doc.Problem(decode.Join("stores", name)+".expose", "this store is internal to belfry; remove the key")
		}
		if c.Stores[name].Bus {
			c.doc.Problem(decode.Join("stores", name)+".bus", "this store is internal to belfry; remove the key")
		}
	}
	if _, err := a.PasskeysAt(c.BaseURL); err != nil {
		c.doc.Problem("authentication.passkeys", "passkeys %v", err)
	}
	if a.Email == nil {
		return
	}
	if _, ok := c.Mailers[a.Email.Mailer]; !ok {
		c.doc.Problem("authentication.providers.email.mailer", "no mailer with this name; %s",
			decode.Known(names(c.Mailers)))
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
			c.doc.Problem(decode.Join("backends", name)+".folder", "is also the folder of backend %s", other)
		}
		owners[b.Folder] = name
	}
}

func (c *Config) checkBinaries(maintained maintained) {
	for _, name := range names(c.Binaries) {
		for _, store := range names(c.Binaries[name].Map) {
			at := decode.Join(decode.Join("binaries", name)+".map", store)
			st := c.Stores[store]
			if st == nil {
				c.doc.Problem(at, "no store with this name; %s", decode.Known(c.KnownStores()))
				continue
			}
			if slices.Contains(internalStores(), store) || store == c.Authentication.IdentStore {
				c.doc.Problem(at, "belfry manages the objects of this store; files cannot be attached to them")
				continue
			}
			for _, property := range c.Binaries[name].Map[store].Names {
				if maintained[store][property].path != "" || st.NeverRead(property) || st.Computed[property] != "" ||
					slices.Contains(st.ReadOnly, property) || slices.Contains(st.Reserved, property) ||
					property == st.Owner {
					c.doc.Problem(at,
						"%s of %s is mapped, copied, computed, private or read-only; files cannot be attached there",
						c.doc.Display(at, property), store)
				}
			}
		}
	}
}
