package plan

import (
	"maps"
	"reflect"
	"slices"

	"belfry/config"
)

// Fixed returns a problem for each key that differs between two configurations and can't change while belfry runs: what is listened on and
// connected to, and what would show other data. Every other key can change.
func Fixed(before, now *config.Config) config.Problems {
	f := &fixed{now: now}
	f.restart("listen", before.Listen, now.Listen)
	f.restart("data", before.Data, now.Data)
	if trustsAtStart(before) && trustsAtStart(now) {
		f.restart("ca", before.CA, now.CA)
	}
	f.bus(&before.Bus, &now.Bus)
	for _, name := range either(before.Backends, now.Backends) {
		was, known := before.Backends[name]
		is, used := now.Backends[name]
		if known && used {
			f.restart("backends."+name, backendAlone(was), backendAlone(is))
		}
	}
	was, is := &before.Authentication, &now.Authentication
	f.moves("authentication.userStore", was.UserStore, is.UserStore, moveStore)
	f.moves("authentication.identStore", was.IdentStore, is.IdentStore, moveStore)
	for name, was := range before.Stores {
		if is := now.Stores[name]; is != nil {
			f.moves("stores."+name+".backend", was.Backend, is.Backend, migrate)
		}
	}
	for name, was := range before.Binaries {
		if is := now.Binaries[name]; is != nil {
			f.binary("binaries."+name, was, is)
		}
	}
	f.problems.Sort()
	return f.problems
}

// How data is moved that another value of a key would leave behind.
const (
	migrate   = "stop belfry, move the data with `belfry migrate --from OLD --to NEW`, and start it with the new file"
	moveStore = "copy the accounts with `belfry export --secrets` and `belfry import --secrets`, and start belfry with the new file"
)

// fixed compares the keys that can't change.
type fixed struct {
	now      *config.Config
	problems config.Problems
}

// restart is about a key that another start reads.
func (f *fixed) restart(key string, was, is any) {
	if !reflect.DeepEqual(was, is) {
		f.problems = append(f.problems, f.now.Problem(key, "can't change while belfry runs: restart it, or set the value of before"))
	}
}

// moves is about a key with whose other value other data would be shown.
func (f *fixed) moves(key string, was, is any, how string) {
	if !reflect.DeepEqual(was, is) {
		f.problems = append(f.problems, f.now.Problem(key, "can't change while belfry runs, since other data would be shown: %s; or set the value of before", how))
	}
}

func (f *fixed) bus(was, is *config.Bus) {
	f.restart("bus.listen", was.Listen, is.Listen)
	f.restart("bus.config", was.Config, is.Config)
	f.restart("bus.url", was.URL, is.URL)
	f.restart("bus.credentials", was.Credentials, is.Credentials)
	f.restart("bus.user", was.User, is.User)
	// The next connection to an external bus uses another password of the same user, or another token; the embedded server reads its
	// file at a start alone.
	if len(was.URL) == 0 {
		f.restart("bus.password", was.Password, is.Password)
		f.restart("bus.token", was.Token, is.Token)
	} else {
		f.restart("bus.token", was.Token != "", is.Token != "")
	}
	f.restart("bus.nkey", was.NKey, is.NKey)
	f.restart("bus.tls", was.TLS, is.TLS)
}

func (f *fixed) binary(at string, was, is *config.Binary) {
	f.moves(at+".type", was.Type, is.Type, migrate)
	f.moves(at+".folder", was.File, is.File, migrate)
	if was.S3 != nil && is.S3 != nil {
		f.moves(at+".bucket", was.S3.Bucket, is.S3.Bucket, migrate)
		f.moves(at+".region", was.S3.Region, is.S3.Region, migrate)
		f.moves(at+".endpoint", was.S3.Endpoint, is.S3.Endpoint, migrate)
		f.moves(at+".prefix", was.S3.Prefix, is.S3.Prefix, migrate)
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
