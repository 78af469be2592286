package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.yaml.in/yaml/v3"

	"belfry/config"
	"belfry/config/decode"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/kit/tlskit"
	"belfry/test/manual/keys"
)

// reloadBases are configurations that together have each section. A key is changed in the first one in which it can be.
var reloadBases = []string{`
listen: 127.0.0.1:0
bus: {listen: ""}
baseURL: http://localhost:8080
proxies: [10.0.0.1]
ca: cert.pem
data: data
metrics: {listen: "127.0.0.1:0", token: 0123456789abcdef}
tracing: {endpoint: "http://127.0.0.1:1"}
static: {folder: front, immutable: [assets]}
pages: {folder: theme}
backup: {folder: saved, schedule: "0 3 * * *", keep: {last: 7}}
backends:
  main: {type: file, folder: objects}
  mongo: {type: mongodb, url: "mongodb://127.0.0.1:1/?replicaSet=x"}
  dynamo: {type: dynamodb, region: eu-north-1, endpoint: "http://127.0.0.1:1"}
stores:
  Authors: {expose: {list: true}, owner: by, policy: {default: allow}}
  Shelves: {}
  Prices:
    references: {author: {store: Authors}}
    copies: {authorName: {from: author.name, read: "true"}}
    map: {Shelves: {key: shelf, aggregates: {prices: count()}}}
  Users: {intercept: {register: [{name: a}]}}
  Books:
    expose: {list: true, url: /tomes, restrict: {get: true}}
    schema: book.json
    defaults: true
    policy: {default: allow, get: "true"}
    owner: by
    map: {Authors: {key: author, target: books, fields: title}}
    fields: {price: {read: "true", write: "true"}}
    private: [cost]
    readOnly: [stars]
    computed: {label: object.title + "!"}
    indexes: [title]
    unique: [isbn]
    search: {fields: [title]}
    intercept: {save: [{name: a}], update: [{name: a}], delete: [{name: a}], get: [{name: a}]}
binaries:
  files:
    type: FileStorage
    folder: files
    map: {Books: {cover: {maxSize: 2MiB, types: image/png}}}
    expose: {url: /files, restrict: {get: false}}
    types: [image/*]
    thumbs: [90x60]
    quota: {user: 1GiB}
  bucket:
    type: S3Storage
    bucket: b
    region: eu-north-1
    endpoint: "http://127.0.0.1:1"
    map: {Books: [scan]}
    expose: {url: /bucket, restrict: {get: false}}
    quota: {user: 1GiB}
mailers:
  post: {type: smtp, host: 127.0.0.1, port: 1, user: u, password: p}
  drawer: {type: file, folder: letters}
authentication:
  encryptionKey: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=
  mfa: {policy: optional}
  passkeys: {rpName: Books}
  passwords: {breached: {url: "http://127.0.0.1:1/range"}}
  providers:
    email:
      mailer: drawer
      recovery: {subject: Once more}
      invitation: {subject: Come here}
      taken: {subject: There you are}
      change: {subject: New}
      undo: {subject: Old}
      login: {link: true, code: true, linkMail: {subject: Come in}, codeMail: {subject: Digits}}
      notices:
        {device: {}, password: {}, factorAdded: {}, factorRemoved: {}, recoveryCodes: {}, loginAdded: {},
         loginRemoved: {}, impersonated: {}, keyAdded: {}, keyRemoved: {}, disabled: {}, deleted: {}, address: {}, deletion: {}}
    github: {clientID: a, clientSecret: b}
    google: {clientID: a, clientSecret: b}
    facebook: {clientID: a, clientSecret: b}
    amazon: {clientID: a, clientSecret: b}
    gitlab: {clientID: a, clientSecret: b}
    discord: {clientID: a, clientSecret: b}
    linkedin: {clientID: a, clientSecret: b}
    apple: {clientID: a, teamID: t, keyID: k, privateKeyFile: apple.p8}
    microsoft: {clientID: a, clientSecret: b}
    slack: {clientID: a, clientSecret: b}
    twitter: {consumerKey: a, consumerSecret: b}
    oidc: {issuer: "http://127.0.0.1:1", clientID: a}
    company: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
`, `
listen: 127.0.0.1:0
bus: {url: "BUS", user: belfry, password: secret}
baseURL: https://localhost:8080
http: {tls: {cert: cert.pem, key: key.pem}}
backup: {s3: {bucket: b, region: eu-north-1, endpoint: "http://127.0.0.1:1"}}
stores: {Authors: {expose: {}, policy: owner}}
authentication:
  providers:
    apple: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
    discord: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
    gitlab: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
    linkedin: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
    microsoft: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
    slack: {type: oidc, issuer: "http://127.0.0.1:1", clientID: a}
  encryptionKey: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=
`, `
listen: 127.0.0.1:0
bus: {listen: ""}
baseURL: https://books.example.com
http: {acme: {email: a@example.com, directory: "https://127.0.0.1:1/directory", storage: certificates}}
`}

// reloadValues are values of keys for which the schema and the example of the reference have none that a base can have,
// and what else changes in the section: null removes a key. A path can name the type of the section.
var reloadValues = map[string]string{
	"authentication.places":                   "{places: city.mmdb}",
	"authentication.providers.*.type of oidc": "{type: NAME, issuer: null, clientID: ''}",
	"authentication.providers.*.type":         "{type: oidc, issuer: 'http://127.0.0.1:1'}",
	"authentication.providers.apple.type of apple": "{type: oidc, issuer: 'http://127.0.0.1:1', teamID: null, " +
		"keyID: null, privateKeyFile: null}",
	"authentication.providers.apple.privateKey":     "{privateKey: '${file:FOLDER/apple.p8}', privateKeyFile: null}",
	"authentication.providers.apple.privateKeyFile": "{privateKeyFile: key.pem}",
	"authentication.providers.apple.teamID":         "{teamID: u}",
	"backends.*.folder":                             "{folder: other}",
	"backends.*.type of dynamodb":                   "{type: file, region: null, endpoint: null}",
	"backends.*.type of mongodb":                    "{type: file, url: null}",
	"backends.*.type":                               "{type: mongodb, folder: null}",
	"backends.*.url":                                "{url: 'mongodb://127.0.0.1:2/?replicaSet=x'}",
	"backup.folder":                                 "{folder: saved2}",
	"backup.s3":                                     "{s3: {bucket: c}, folder: null}",
	"binaries.*.folder":                             "{folder: other}",
	"binaries.*.type of S3Storage":                  "{type: FileStorage, bucket: null, region: null, endpoint: null}",
	"binaries.*.type":                               "{type: S3Storage, folder: null, bucket: c}",
	"bus.config":                                    "{config: nats.conf, listen: null}",
	"bus.credentials":                               "{credentials: nats.creds, user: null, password: null}",
	"bus.nkey":                                      "{nkey: nats.nk, user: null, password: null}",
	"bus.password":                                  "{password: other}",
	"bus.replicas":                                  "{replicas: 1}",
	"bus.tls":                                       "{tls: {ca: cert.pem}}",
	"bus.tls.ca":                                    "{ca: cert.pem}",
	"bus.tls.cert":                                  "{cert: cert.pem, key: key.pem}",
	"bus.tls.key":                                   "{cert: cert.pem, key: key.pem}",
	"bus.token":                                     "{token: t, user: null, password: null}",
	"bus.user":                                      "{user: other}",
	"ca":                                            "{ca: cert2.pem}",
	"data":                                          "{data: other}",
	"development": "{development: true, proxies: null, proxyHeader: null, " +
		"hosts: null}",
	"http.acme.ca":           "{ca: cert.pem}",
	"http.acme.storage":      "{storage: other}",
	"http.redirect":          "{redirect: '127.0.0.1:0'}",
	"http.tls.cert":          "{cert: cert2.pem, key: key2.pem}",
	"http.tls.key":           "{cert: cert2.pem, key: key2.pem}",
	"mailers.*.folder":       "{folder: other}",
	"mailers.*.type of smtp": "{type: file, host: null, port: null, user: null, password: null}",
	"mailers.*.type":         "{type: smtp, host: 127.0.0.1, folder: null}",
	"mailers.*.password":     "{password: q}",
	"metrics.listen":         "{listen: ''}",
	"metrics.token":          "{token: fedcba9876543210}",
	"pages.folder":           "{folder: null}",
	"pages.languages":        "{languages: words}",
	"branding.logo":          "{logo: logo.svg}",
	"branding.color":         "{color: '#7a1f5c'}",
	"static.folder":          "{folder: front2}",
	"stores.*.computed.*":    `{label: "object.title + '?'"}`,
	"stores.*.schema":        "{schema: other.json}",

	"stores.*.copies.*.from":         "{from: author.first}",
	"stores.*.copies.*.read":         "{read: user != null}",
	"stores.*.map.*.aggregates.*":    "{prices: max(price)}",
	"stores.*.references.*.onDelete": "{onDelete: restrict}",
	"stores.*.references.*.required": "{required: true}",
	"stores.*.references.*.store":    "{store: Shelves}",
	"tracing.endpoint":               "{endpoint: 'http://127.0.0.1:2'}",
}

// schemaKey is a key of the JSON Schema: its path, with A for a name that is chosen and [] for an item, and the type of
// the section that it is in, if only some have it.
type schemaKey struct {
	path   []string
	kind   string
	schema map[string]any
}

func (k schemaKey) String() string {
	text := strings.ReplaceAll(strings.Join(k.path, "."), ".[]", "[]")
	if k.kind != "" {
		text += " of " + k.kind
	}
	return text
}

// schemaKeys returns all keys of the schema. Items that are values belong to the key of their list.
func schemaKeys(t *testing.T) (all []schemaKey) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	var walk func(k schemaKey)
	within := func(path []string, schema map[string]any, kind string) {
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			walk(schemaKey{append(slices.Clone(path), name), kind, properties[name].(map[string]any)})
		}
		for word, name := range map[string]string{"additionalProperties": "A", "items": "[]"} {
			if inner, ok := schema[word].(map[string]any); ok {
				walk(schemaKey{append(slices.Clone(path), name), "", inner})
			}
		}
	}
	seen := map[string]bool{}
	walk = func(k schemaKey) {
		if len(k.path) > 0 && k.path[len(k.path)-1] != "[]" && !seen[k.String()] {
			seen[k.String()] = true
			all = append(all, k)
		}
		within(k.path, k.schema, "")
		for _, choice := range list(k.schema["anyOf"]) {
			within(k.path, choice, "")
		}
		for _, variant := range list(k.schema["allOf"]) {
			of := variant["if"].(map[string]any)["properties"].(map[string]any)["type"].(map[string]any)
			within(k.path, variant["then"].(map[string]any), of["const"].(string))
		}
	}
	walk(schemaKey{schema: root})
	return all
}

func list(of any) (all []map[string]any) {
	items, _ := of.([]any)
	for _, item := range items {
		all = append(all, item.(map[string]any))
	}
	return all
}

// find returns the section of a document that has the key, and its path there: of several, all but the first few are
// passed over. It can add sections that are missing on the way.
func (k schemaKey) find(doc any, path []string, at string, add bool, pass *int) (section map[string]any, where string) {
	if items, ok := doc.([]any); ok && path[0] == "[]" && len(items) > 0 {
		return k.find(items[0], path[1:], at+"[0]", add, pass)
	}
	in, ok := doc.(map[string]any)
	if !ok {
		return nil, ""
	}
	candidates := []string{path[0]}
	if path[0] == "A" {
		candidates = slices.Sorted(maps.Keys(in))
	}
	for _, name := range candidates {
		if len(path) == 1 {
			kind, _ := in["type"].(string)
			if kind = cmp.Or(kind, at[strings.LastIndexByte(at, '.')+1:]); k.kind != "" && kind != k.kind {
				return nil, ""
			}
			if *pass--; *pass < 0 {
				return in, decode.Join(at, name)
			}
			continue
		}
		inner := in[name]
		if inner == nil && add && path[0] != "A" {
			inner = map[string]any{}
		}
		if section, where := k.find(inner, path[1:], decode.Join(at, name), add, pass); section != nil {
			in[name] = inner
			return section, where
		}
	}
	return nil, ""
}

// keyValue is what is set in the section of a key; nil removes a key.
type keyValue map[string]any

// with returns a document in which the key has another value, at the first place where it can be, or one after it. The
// document is empty if there is none.
func (k schemaKey) with(text string, to keyValue, place int) (changed, where string) {
	for _, add := range []bool{false, true} {
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
			panic(err)
		}
		pass := place
		section, where := k.find(doc, k.path, "", add, &pass)
		if section == nil {
			continue
		}
		name := where[strings.LastIndexByte(where, '.')+1:]
		for key, value := range to {
			switch {
			case key == "":
				key = name
			case value == "NAME":
				value = k.path[len(k.path)-2]
			}
			if delete(section, key); value != nil {
				section[key] = value
			}
		}
		return marshal(doc), where
	}
	return "", ""
}

// values returns what the key may be changed to: by the table of this test, the example of the reference, and the
// schema.
func (k schemaKey) values(documented *keys.File, folder string) (all []keyValue) {
	path := strings.ReplaceAll(strings.Join(k.path, "."), ".[]", "[]")
	for _, of := range []string{k.String(), path} {
		for pattern, text := range reloadValues {
			if keys.Match(pattern, of) {
				var to keyValue
				if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "FOLDER", folder)), &to); err != nil {
					panic(err)
				}
				return []keyValue{to}
			}
		}
	}
	if d := documented.Find(path); d != nil && d.Example.Kind != 0 {
		var value any
		if err := d.Example.Decode(&value); err != nil {
			panic(err)
		}
		all = append(all, keyValue{"": value})
	}
	for _, schema := range append(list(k.schema["anyOf"]), k.schema) {
		for _, value := range asList(schema["enum"]) {
			all = append(all, keyValue{"": value})
		}
		if slices.Contains(asList(schema["type"]), any("boolean")) {
			all = append(all, keyValue{"": true}, keyValue{"": false})
		}
	}
	return append(all, keyValue{"": nil})
}

// isSection reports whether the key has others. These have the policies, but for that of a section that is added or
// removed.
func (k schemaKey) isSection() bool {
	return slices.ContainsFunc(append(list(k.schema["anyOf"]), k.schema), func(schema map[string]any) bool {
		items, _ := schema["items"].(map[string]any)
		return schema["properties"] != nil || schema["allOf"] != nil || items["properties"] != nil ||
			schema["additionalProperties"] != nil && schema["additionalProperties"] != false
	})
}

// isConstant reports whether the key has one value alone.
func (k schemaKey) isConstant() bool {
	return slices.ContainsFunc(append(list(k.schema["anyOf"]), k.schema), func(schema map[string]any) bool {
		return len(asList(schema["enum"])) == 1
	})
}

func asList(of any) []any {
	all, _ := of.([]any)
	return all
}

func marshal(doc any) string {
	text, err := yaml.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// keyChange is a change of a key in one of the bases.
type keyChange struct {
	schemaKey
	base, place int
	to          keyValue
	where       string // the path of the key in the base
	policy      string // as the tag says it
	described   *keys.Key
}

// places is how many sections of one kind are tried.
const places = 4

// choose finds a change of a key: the first value that a base can have, and by which the key differs.
func (k schemaKey) choose(bases []*reloadPlace, documented *keys.File) *keyChange {
	var about *keyChange
	for i, base := range bases {
		for place := range places {
			for _, to := range k.values(documented, base.folder) {
				text, where := k.with(base.text, to, place)
				if text == "" {
					break
				}
				now, err := base.parse(text)
				if err != nil {
					continue
				}
				policy := decode.PolicyOf[config.Config](strings.ReplaceAll(where, "[0]", ""))
				c := &keyChange{k, i, place, to, where, policy, documented.Find(strings.ReplaceAll(where, "[0]", "[]"))}
				switch changes := config.Changes(base.config, now); {
				case differs(changes, where, true):
					return c
				case about == nil && differs(changes, where, false):
					about = c
				}
			}
		}
	}
	return about
}

// differs reports whether a change is that of a key, or of one in its section. Where it need not be exact, it can be
// that of the section that has the key, or of one beside it: some keys decide about others.
func differs(changes []config.Change, where string, exact bool) bool {
	within := where[:max(strings.LastIndexByte(where, '.'), 0)]
	return slices.ContainsFunc(changes, func(c config.Change) bool {
		near := !exact && within != "" && (c.Path == within || isBelow(c.Path, within))
		return c.Path == where || isBelow(c.Path, where) || near
	})
}

func isBelow(path, section string) bool {
	return strings.HasPrefix(path, section+".") || strings.HasPrefix(path, section+"[")
}

func (p *place) parse(text string) (*config.Config, error) {
	return config.Parse(p.path("belfry.yaml"), []byte(text), os.LookupEnv)
}

// A reload does with each key of the configuration what the tag of its field says. It applies the value, so that the
// process serves as one that starts with it does; or it changes nothing, and says which key, why, and what to do.
func TestAReloadDoesWithEachKeyWhatItsTagSays(t *testing.T) {
	t.Parallel()
	documented, err := keys.Read("../../test/manual/keys/keys.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bus := natsserver.Serve(t, &server.Options{
		JetStream: true, JetStreamMaxStore: 1 << 40, StoreDir: t.TempDir(), Username: "belfry", Password: "secret",
	})
	var bases []*reloadPlace
	for _, text := range reloadBases {
		bases = append(bases, newReloadPlace(t, strings.ReplaceAll(text, "BUS", bus.ClientURL())))
	}
	by := make([][]*keyChange, len(bases))
	for _, k := range schemaKeys(t) {
		c := k.choose(bases, documented)
		switch {
		case c != nil:
			by[c.base] = append(by[c.base], c)
		case !k.isSection() && !k.isConstant():
			t.Errorf("%s: no other value is known: add one to reloadValues", k)
		}
	}
	for i, changes := range by {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			p := bases[i]
			p.T = t
			p.reloadEach(changes)
		})
	}
}

// reloadPlace is a place with the files that a base names.
type reloadPlace struct {
	*place
	text string
}

// grouped has keys that the reference describes as one, such as the client's id of each provider, change together if a
// reload applies them.
func grouped(changes []*keyChange) (groups [][]*keyChange) {
	at := map[string]int{}
	for _, c := range changes {
		name := c.String()
		if c.described != nil && c.policy == "live" && !c.hides() {
			name = c.described.Path
		}
		if _, known := at[name]; !known {
			at[name], groups = len(groups), append(groups, nil)
		}
		groups[at[name]] = append(groups[at[name]], c)
	}
	return groups
}

// reloadEach starts a belfry and changes each key, beside those that were changed before where that can be. In the end
// it serves as one that starts.
func (p *reloadPlace) reloadEach(changes []*keyChange) {
	a, _ := p.reloadable()
	now := p.text
	for _, group := range grouped(changes) {
		next, applied, err := p.reloadKeys(a, now, group...)
		switch {
		case err == nil && applied && !group[0].hides():
			now = next
		case err == nil && applied:
			p.reload(a, now)
		case err != nil:
			for _, c := range group {
				p.reload(a, p.text)
				if _, _, err := p.reloadKeys(a, p.text, c); err != nil {
					p.Errorf("%s: %v", c.where, err)
				}
			}
			p.reload(a, now)
		}
	}
	p.reload(a, now)
	p.config = a.now().Config
	kit.WaitUntil(p, func() error { // the check of the bus may have read the consumers while they changed
		if all := a.parts.Check(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "consumer ") }) {
			return fmt.Errorf("degraded: %q", all)
		}
		return nil
	})
	reloaded := p.observe(a)
	p.stop(a)
	a = p.start()
	started := p.observe(a)
	for name, is := range started {
		if was := reloaded[name]; was != is {
			p.Errorf("after all reloads %s is not that of a start: %s", name, firstDifference(was, is))
		}
	}
	p.stop(a)
}

// hides reports whether other keys are not seen, or can't be, after the change.
func (c *keyChange) hides() bool {
	return c.isSection() || c.to[""] == false || c.to["type"] != nil ||
		c.where == "development" || c.where == "bus.password" || strings.Contains(c.where, ".restrict.")
}

// firstDifference shows where two texts begin to differ.
func firstDifference(got, want string) string {
	was, is := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, was[i], is[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(was), len(is))
}

// reloadKeys has a belfry reload another configuration, and reports whether it is applied. The error is of a change
// that can't be, or about which the policy of another key decides.
func (p *reloadPlace) reloadKeys(a *App, before string, changes ...*keyChange) (text string, applied bool, err error) {
	p.Helper()
	text = before
	paths := make([]string, len(changes))
	for i, c := range changes {
		text, paths[i] = c.with(text, c.to, c.place)
	}
	was := a.now().Config
	next, err := p.parse(text)
	if err != nil {
		return "", false, err
	}
	refusals, differences := config.Refusals(was, next), config.Changes(was, next)
	for i, c := range changes {
		usual, _, conditional := strings.Cut(c.policy, " unless ")
		switch {
		case paths[i] == "" || !differs(differences, paths[i], false):
			return "", false, fmt.Errorf("%s is the same", c.where)
		case c.isSection() || conditional:
		case usual == "live" && len(refusals) > 0:
			return "", false, fmt.Errorf("the policy is live: %w", refusals)
		case usual != "live" && len(refusals) == 0:
			return "", false, fmt.Errorf("the policy is %s, and nothing refuses the change", c.policy)
		}
	}
	p.write("belfry.yaml", text)
	r, err := command.Reload.Do(p.Context(), p.config, struct{}{})
	if len(refusals) > 0 {
		for i, c := range changes {
			p.isRefused(c, paths[i], err)
		}
		if a.now().Config != was {
			p.Errorf("%s is refused, and the configuration has changed", paths)
		}
		return text, false, nil
	}
	if err != nil {
		return "", false, err
	}
	for _, path := range paths {
		named := func(key string) bool { return key == path || isBelow(path, key) || isBelow(key, path) }
		if !slices.ContainsFunc(r.Changed, named) {
			p.Errorf("%s has changed, and the reload names %q", path, r.Changed)
		}
	}
	p.serves(a, next)
	if !strings.HasPrefix(paths[0], "bus.events.") {
		return text, true, nil
	}
	if is := p.stream(a); next.Bus.Events != (config.Events{MaxAge: is.MaxAge, MaxBytes: is.MaxBytes,
		MaxMessages: is.MaxMsgs}) {
		p.Errorf("the stream of events has %+v, want %+v", is, next.Bus.Events)
	}
	return text, true, nil
}

// isRefused checks what a reload says about a key that it refuses.
func (p *reloadPlace) isRefused(c *keyChange, where string, err error) {
	p.Helper()
	says := "can't change while belfry runs: restart it, or set the value of before"
	if command, moves := strings.CutPrefix(c.policy, "refused="); moves {
		says = "can't change while belfry runs, since other data would be shown: " + map[string]string{
			"data":     "stop belfry, move the data with `belfry migrate",
			"accounts": "copy the accounts with `belfry export",
		}[command]
	}
	if want := where + ": " + says; !c.isSection() && !strings.Contains(fmt.Sprint(err), want) {
		p.Errorf("%s is refused without the words %q: %v", where, want, err)
	}
}

// serves checks that a belfry has a configuration, and listens where that says.
func (p *reloadPlace) serves(a *App, c *config.Config) {
	p.Helper()
	if left := config.Changes(a.now().Config, c); len(left) > 0 {
		p.Errorf("the configuration still differs: %v", left)
	}
	for at, is := range map[string]string{
		c.Listen: a.HTTPAddress(), c.Bus.Listen: a.Bus().ClientURL(), c.Metrics.Listen: a.now().MetricsAddress,
	} {
		if _, port, _ := strings.Cut(at, ":"); port != "0" && !strings.HasSuffix(is, port) {
			p.Errorf("belfry listens on %q, want %s", is, at)
		}
	}
	if h, err := hold.HolderOf(c.Data); err != nil || h == nil {
		p.Errorf("belfry does not use the folder %s: %v", c.Data, err)
	}
}

// random are ids, tokens, digests and times in replies.
var random = regexp.MustCompile(`[0-9a-f]{12,32}|[-\w]{43}|\d\d:\d\d:\d\d|127.0.0.1:\d+`)

// observe returns what a process serves, but for /readyz: whether a dependency has replied in time and a backup has
// failed so far is not a matter of the configuration.
func (p *reloadPlace) observe(a *App) map[string]string {
	p.Helper()
	all := map[string]string{"the list of routes": strings.Join(a.Routes(), "\n")}
	for _, route := range a.Routes() {
		path, isGet := strings.CutPrefix(route, "GET ")
		if !isGet || strings.ContainsAny(path, "{*") || path == "/events" || path == "/readyz" ||
			p.config.Secure() {
			continue
		}
		res := httptest.NewRecorder()
		a.ServeHTTP(res, httptest.NewRequest("GET", "http://"+a.HTTPAddress()+path, nil))
		all["the reply to "+route] = random.ReplaceAllString(fmt.Sprintf("%d\n%v\n%s", res.Code, res.Header(),
			res.Body), "X")
	}
	all["the stream of events"] = fmt.Sprintf("%+v", p.stream(a))
	return all
}

// stream returns the settings of the stream of events.
func (p *reloadPlace) stream(a *App) (settings jetstream.StreamConfig) {
	p.Helper()
	kit.WaitUntil(p, func() error { // the connection may be a new one
		info, err := a.Bus().JetStream().Stream(p.Context(), "EVENTS")
		if err == nil {
			settings = info.CachedInfo().Config
		}
		return err
	})
	return settings
}

// newReloadPlace makes the files that the bases name.
func newReloadPlace(t *testing.T, text string) *reloadPlace {
	t.Helper()
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	for _, folder := range []string{"theme", "words", "front/assets", "front2/assets"} {
		if err := os.MkdirAll(p.path(folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tlskit.WriteValid(t, p.path("cert.pem"), p.path("key.pem"), "localhost")
	tlskit.WriteValid(t, p.path("cert2.pem"), p.path("key2.pem"), "localhost")
	for name, text := range map[string]string{
		"theme/start.html": `{{define "title"}}x{{end}}{{define "content"}}the first page{{end}}`,
		"logo.svg":         "<svg xmlns='http://www.w3.org/2000/svg'/>",
		"front/index.html": "front", "front2/index.html": "other",
		"book.json":  `{"properties": {"title": {"type": "string", "default": "Untitled"}}}`,
		"other.json": `{"properties": {"title": {"type": "string"}}}`,
		"nats.creds": "x", "nats.nk": "x", "nats.conf": "",
		"city.mmdb": fileText(t, cityFile), "apple.p8": fileText(t, p.path("key.pem")),
	} {
		p.write(name, text)
	}
	p.config = p.load(text)
	return &reloadPlace{p, text}
}
