package plan

import (
	"maps"
	"reflect"
	"slices"

	"belfry/config"
)

// Fixed returns a problem for each key that differs between two configurations and can't change while belfry runs:
// what is opened, listened on or subscribed to at the start, and what needs work on the objects that there are.
// Every other key can change.
func Fixed(before, now *config.Config) (problems config.Problems) {
	differ := func(key string, was, is any) {
		if !reflect.DeepEqual(was, is) {
			problems = append(problems, now.Problem(key, "can't change while belfry runs: restart it, or set the value of before"))
		}
	}
	differ("listen", before.Listen, now.Listen)
	differ("data", before.Data, now.Data)
	differ("http.tls", before.HTTP.TLS != nil, now.HTTP.TLS != nil)
	fixedACME(differ, before.HTTP.ACME, now.HTTP.ACME)
	differ("http.redirect", before.HTTP.Redirect, now.HTTP.Redirect)
	differ("log.format", before.Log.Format, now.Log.Format)
	differ("metrics.listen", before.Metrics.Listen, now.Metrics.Listen)
	if trustsAtStart(before) && trustsAtStart(now) {
		differ("ca", before.CA, now.CA)
	}
	differ("tracing", tracingAlone(before), tracingAlone(now))
	differ("backup", backupAlone(before.Backup), backupAlone(now.Backup))
	fixedBus(differ, &before.Bus, &now.Bus)
	for _, name := range either(before.Backends, now.Backends) {
		differ("backends."+name, backendAlone(before.Backends[name]), backendAlone(now.Backends[name]))
	}
	was, is := &before.Authentication, &now.Authentication
	differ("authentication.userStore", was.UserStore, is.UserStore)
	differ("authentication.identStore", was.IdentStore, is.IdentStore)
	differ("authentication.providers.email", was.Email != nil, is.Email != nil)
	for _, name := range either(before.Stores, now.Stores) {
		was, is := before.Stores[name], now.Stores[name]
		differ("stores."+name, was != nil, is != nil)
		if was != nil && is != nil {
			fixedStore(differ, before, now, was, is)
		}
	}
	for _, name := range either(before.Binaries, now.Binaries) {
		was, is := before.Binaries[name], now.Binaries[name]
		differ("binaries."+name, was != nil, is != nil)
		if was != nil && is != nil {
			fixedBinary(differ, "binaries."+name, was, is)
		}
	}
	return problems
}

// comparing reports a key whose values differ.
type comparing func(key string, was, is any)

// fixedACME compares each key, since the domains are by default that of baseURL, whose change is then refused for them.
func fixedACME(differ comparing, was, is *config.ACME) {
	differ("http.acme", was != nil, is != nil)
	if was == nil || is == nil {
		return
	}
	differ("http.acme.domains", was.Domains, is.Domains)
	differ("http.acme.email", was.Email, is.Email)
	differ("http.acme.directory", was.Directory, is.Directory)
	differ("http.acme.ca", was.CA, is.CA)
	differ("http.acme.storage", was.Storage, is.Storage)
}

func fixedBus(differ comparing, was, is *config.Bus) {
	differ("bus.listen", was.Listen, is.Listen)
	differ("bus.config", was.Config, is.Config)
	differ("bus.url", was.URL, is.URL)
	differ("bus.credentials", was.Credentials, is.Credentials)
	differ("bus.user", was.User, is.User)
	// The next connection to an external bus uses another password of the same user, or another token; the embedded server reads its
	// file at a start alone.
	if len(was.URL) == 0 {
		differ("bus.password", was.Password, is.Password)
		differ("bus.token", was.Token, is.Token)
	} else {
		differ("bus.token", was.Token != "", is.Token != "")
	}
	differ("bus.nkey", was.NKey, is.NKey)
	differ("bus.tls", was.TLS, is.TLS)
	differ("bus.events", was.Events, is.Events)
	differ("bus.replicas", was.Replicas, is.Replicas)
}

// fixedStore compares what of a store is in its records, or in the work of listeners.
func fixedStore(differ comparing, before, now *config.Config, was, is *config.Store) {
	at := "stores." + was.Name
	differ(at+".backend", was.Backend, is.Backend)
	differ(at+".indexes", declaredIndexes(was), declaredIndexes(is))
	differ(at+".unique", was.Unique, is.Unique)
	differ(at+".computed", was.Computed, is.Computed)
	differ(at+".search", was.Search, is.Search)
	for _, target := range either(was.Map, is.Map) {
		m, mapped := was.Map[target]
		n, maps := is.Map[target]
		differ(at+".map."+target, mapped, maps)
		if mapped && maps {
			differ(at+".map."+target, m, n)
		}
		if maps && n.SameOwner { // the owners are in the entries
			differ(at+".owner", before.OwnerField(was.Name), now.OwnerField(is.Name))
			differ("stores."+target+".owner", before.OwnerField(target), now.OwnerField(target))
		}
	}
}

// declaredIndexes returns the indexes of a store without that of the owner, which belfry adds: as the index of a rule,
// it is used if it is there, and named if it is not.
func declaredIndexes(s *config.Store) [][]string {
	all := slices.DeleteFunc(slices.Clone(s.Indexes), func(fields []string) bool { return slices.Equal(fields, []string{s.Owner}) })
	if len(all) == 0 {
		return nil // as without indexes
	}
	return all
}

func fixedBinary(differ comparing, at string, was, is *config.Binary) {
	differ(at+".type", was.Type, is.Type)
	differ(at+".folder", was.File, is.File)
	differ(at+".map", was.Map, is.Map)
	differ(at+".grace", was.Grace, is.Grace)
	if was.S3 != nil && is.S3 != nil {
		differ(at+".bucket", was.S3.Bucket, is.S3.Bucket)
		differ(at+".region", was.S3.Region, is.S3.Region)
		differ(at+".endpoint", was.S3.Endpoint, is.S3.Endpoint)
		differ(at+".prefix", was.S3.Prefix, is.S3.Prefix)
	}
}

// either returns the names that are in one of two maps, sorted.
func either[V any](a, b map[string]V) []string {
	all := append(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))...)
	slices.Sort(all)
	return slices.Compact(all)
}

// trustsAtStart reports whether something that is opened at the start trusts the authorities of the key ca. That key is in the settings of all
// of it, and is compared by itself.
func trustsAtStart(c *config.Config) bool {
	for _, b := range c.Backends {
		if b.MongoDB != nil || b.DynamoDB != nil {
			return true
		}
	}
	for _, b := range c.Binaries {
		if b.S3 != nil {
			return true
		}
	}
	return c.Backup != nil && c.Backup.S3 != nil || c.Tracing.Endpoint != "" || len(c.Bus.URL) > 0 && c.Bus.TLS.CA == "" || c.HTTP.ACME != nil && c.HTTP.ACME.CA == ""
}

func tracingAlone(c *config.Config) any {
	t := c.Tracing
	t.CA = ""
	return t
}

func backupAlone(b *config.Backup) any {
	if b == nil || b.S3 == nil {
		return b
	}
	alone, s3 := *b, *b.S3
	s3.CA, alone.S3 = "", &s3
	return &alone
}

func backendAlone(b config.Backend) any {
	if b.MongoDB != nil {
		m := *b.MongoDB
		m.CA, b.MongoDB = "", &m
	}
	if b.DynamoDB != nil {
		d := *b.DynamoDB
		d.CA, b.DynamoDB = "", &d
	}
	return b
}
