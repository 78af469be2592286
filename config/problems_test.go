package config

import (
	"errors"
	"strings"
	"testing"
)

// invalidCase is a configuration and every line of its error, without the file name.
type invalidCase struct {
	name, text string
	want       []string
}

func checkInvalid(t *testing.T, cases []invalidCase) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c, err := Parse("belfry.yaml", []byte(test.text), environment)
			if err == nil || c != nil {
				t.Fatalf("accepted:\n%s", test.text)
			}
			var problems Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("got a %T, want Problems", err)
			}
			want := "belfry.yaml:" + strings.Join(test.want, "\nbelfry.yaml:")
			if err.Error() != want {
				t.Errorf("of\n%s\ngot\n%s\nwant\n%s", test.text, err, want)
			}
		})
	}
}

const knownAtTop = "expected one of listen, baseURL, hosts, proxies, data, development, maxObjectSize, tombstones, " +
	"admins, shutdownTimeout, shutdownDelay, fillRate, log, metrics, tracing, bus, events, limits, documents, " +
	"backends, authentication, stores, mailers, binaries, ..."
const knownOfStore = "expected one of backend, expose, schema, defaults, formats, policy, owner, uuid, references, " +
	"copies, map, fields, private, readOnly, computed, indexes, title, unique, search, intercept, maxObjectSize, bus"

func TestUnknownKeys(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"a typing error", "stores:\n  Books:\n    exposed: {}\n", []string{
			"3:5: stores.Books.exposed: unknown key; did you mean expose?"}},
		{"case and separators", "base_url: http://a\nListen: :80\nSTORES: {}\n", []string{
			"1:1: base_url: unknown key; did you mean baseURL?",
			"2:1: Listen: unknown key; did you mean listen?",
			"3:1: STORES: unknown key; did you mean stores?"}},
		{"a synonym", "port: 80\nstores: {Books: {url: /b}}\n", []string{
			"1:1: port: unknown key; did you mean listen?",
			"2:18: stores.Books.url: unknown key; did you mean expose.url?"}},
		{"nothing similar", "wheels: 4\n", []string{"1:1: wheels: unknown key; " + knownAtTop}},
		{"a level too high", "stores:\n  Books:\n  expose: {public: true}\n", []string{
			"3:12: stores.expose.public: unknown key; " + knownOfStore}},
		{"of another type", "backends:\n  default: {type: file, database: x}\nmailers:\n  m: {host: a}\n", []string{
			"2:25: backends.default.database: unknown key of a backend of type file; expected one of type, " +
				"folder, cache",
			"4:7: mailers.m.host: unknown key of a mailer of type file; expected one of type, folder"}},
		{"every section is strict", `
log: {x: 1}
bus: {y: 1, tls: {z: 1}, events: {max: 1}}
stores:
  A:
    expose: {urll: /a, restrict: {delet: true}}
    policy: {updaet: x}
    map: {A: {key: k, target: t, filds: a}}
    intercept: {saved: [], save: [{name: n, timout: 1s}]}
binaries: {b: {expose: {restrict: {update: true}, list: true}, maxsize: 1}}
authentication: {userstore: U, providers: {email: {form: a}, github: {id: 1}, twitter: {clientID: 1}, oidc: {issuer: "http://i", url: x}}}
`, []string{
			`2:7: log.x: unknown key; expected one of level, format`,
			`3:7: bus.y: unknown key; expected one of listen, url, config, credentials, user, password, token, nkey, tls, events, replicas`,
			`3:13: bus.tls: applies only to an external cluster or a server with its own configuration; set bus.url or bus.config, or remove this key`,
			`3:19: bus.tls.z: unknown key; expected one of ca, cert, key`,
			`3:35: bus.events.max: unknown key; expected one of maxAge, maxBytes, maxMessages`,
			`6:14: stores.A.expose.urll: unknown key; did you mean url?`,
			`6:35: stores.A.expose.restrict.delet: unknown key; did you mean delete?`,
			`7:14: stores.A.policy.updaet: unknown key; did you mean update?`,
			`8:34: stores.A.map.A.filds: unknown key; did you mean fields?`,
			`9:17: stores.A.intercept.saved: unknown key of intercept; did you mean save?`,
			`9:45: stores.A.intercept.save[0].timout: unknown key; did you mean timeout?`,
			`10:36: binaries.b.expose.restrict.update: unknown key; expected one of create, get, delete`,
			`10:51: binaries.b.expose.list: unknown key; expected one of url, restrict`,
			`10:64: binaries.b.maxsize: unknown key of a binary service of type FileStorage; did you mean maxSize?`,
			`11:18: authentication.userstore: unknown key; did you mean userStore?`,
			`11:52: authentication.providers.email.form: unknown key; did you mean from?`,
			`11:71: authentication.providers.github.id: unknown key; expected one of clientID, clientSecret, scope, tokens, authURL, tokenURL, profileURL`,
			`11:89: authentication.providers.twitter.clientID: unknown key; expected one of consumerKey, consumerSecret, requestTokenURL, authorizeURL, accessTokenURL, profileURL`,
			`11:130: authentication.providers.oidc.url: unknown key; expected one of type, issuer, clientID, clientSecret, scope, tokens`,
		}},
	})
}

func TestWrongKindsOfValues(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"text instead of keys", "just text\n", []string{"1:1: expected keys with values, not a single value"}},
		{"a list instead of keys", "stores: [Books]\n", []string{"1:1: stores: expected keys with values, not a list"}},
		{"a value instead of keys", "stores: {Books: {expose: true}}\n", []string{
			"1:18: stores.Books.expose: expected keys with values, not a single value"}},
		{"keys instead of a value", "listen: {port: 80}\n",
			[]string{"1:1: listen: expected a single value, not keys with values"}},
		{"a value instead of a list", "stores: {Books: {indexes: title}}\n", []string{
			"1:18: stores.Books.indexes: expected a list, such as [a, b], not a single value"}},
		{"keys instead of a list", "stores: {Books: {intercept: {save: {name: a}}}}\n", []string{
			"1:30: stores.Books.intercept.save: expected a list, such as [{name: a}], not keys with values"}},
		{"a list in a list", "stores: {Books: {private: [a, [b]]}}\n", []string{
			"1:31: stores.Books.private[1]: expected a single value, not a list"}},
		{"no value", "listen:\nstores: {Books: {schema: ~}}\n", []string{
			"1:1: listen: has no value; set one, or remove the key to use its default",
			"2:18: stores.Books.schema: has no value; set one, or remove the key to use its default"}},
		{"a key given twice", "data: a\nlisten: :80\ndata: b\n",
			[]string{"3:1: data: is a duplicate key, first in line 1"}},
		{"keys that are no names", "? [a]\n: 1\n? {b: c}\n: 2\n!!str listen: :80\n", []string{
			"1:3: expected a key before the colon, not a list",
			"3:3: expected a key before the colon, not keys with values",
			"5:1: a key cannot have a tag"}},
		{"tags", "listen: !!str 80\nlog: !!map {}\nstores: !x {}\n", []string{
			"1:1: listen: expected a single value, not a value with a tag (!...)",
			"2:1: log: expected keys with values, not a value with a tag (!...)",
			"3:1: stores: expected keys with values, not a value with a tag (!...)"}},
		{"merging", "stores:\n  A: &a {expose: {}}\n  B: {<<: *a}\n", []string{
			"3:7: stores.B: merge keys (<<) are not supported; write the keys out, or use an alias for a whole value"}},
		{"a key that would break the line", "\"a\\nb.c\": 1\n", []string{
			`1:1: "a\nb.c": unknown key; ` + knownAtTop}},
	})
}

func TestSyntax(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"a wrong indentation", "# c\n\nstores:\n  Books:\n    expose: {}\n   schema: x\nlisten: :80\n", []string{
			"6: is not valid YAML: did not find expected key (check the indentation, and the quotes around values)"}},
		{"a brace left open", "# c\nstores:\n  Books:\n    expose: {url: /books\n    schema: x\nlisten: :80\n",
			[]string{
				"4: is not valid YAML: did not find expected ',' or '}'"}},
		{"a quote left open", "data: x\nlisten: \"a\nstores: {}\n", []string{
			"2: is not valid YAML: found unexpected end of stream"}},
		{"a tab", "stores:\n\tBooks: {}\n", []string{
			"2: is not valid YAML: found character that cannot start any token (indent with spaces, not tabs; a " +
				"value that begins with @, % or ` needs quotes)"}},
		{"a colon in a value", "data: x\nauthentication:\n  providers: {}\n  successRedirect: a: b\n", []string{
			`4: is not valid YAML: mapping values are not allowed in this context (a value that contains ": " needs quotes)`}},
		{"no colon", "data: x\nlisten = 80\nlog: {}\n", []string{
			"2: is not valid YAML: could not find expected ':' (expected key: value)"}},
		{"a second document", "data: x\n---\ndata: y\n",
			[]string{"2: a second YAML document starts here; expected one"}},
		{"a broken second document", "data: x\n---\n}\n",
			[]string{"3: is not valid YAML: did not find expected node content"}},
	})
}

func TestValues(t *testing.T) {
	const duration = "expected a duration with its unit, such as 250ms, 30s, 12h or 7d"
	const size = "expected a size such as 256KiB, 10MiB, 10MB or a number of bytes"
	const address = "expected host:port, such as 127.0.0.1:8080, or :8080 for every interface"
	const redirect = "expected a URL such as https://example.com/welcome, or a path such as /welcome"
	checkInvalid(t, []invalidCase{
		{"addresses", "listen: 8080\nbus: {listen: 'local host:1'}\n", []string{
			`1:1: listen: ` + address + `, not "8080"`,
			`2:7: bus.listen: ` + address + `, not "local host:1"`}},
		{"an empty address is for the bus alone", "listen: ''\nbus: {listen: ''}\n", []string{
			`1:1: listen: ` + address + `, not ""`}},
		{"a port out of range", "listen: :65536\n", []string{`1:1: listen: ` + address + `, not ":65536"`}},
		{"one address for two servers", "listen: 127.0.0.1:4222\n", []string{
			"1:1: listen: is also the address of bus.listen; HTTP and NATS cannot share one"}},
		{"base URLs", "baseURL: localhost:8080\n", []string{
			`1:1: baseURL: expected a URL such as http://example.com (schemes: http, https), not "localhost:8080"`}},
		{"a base URL with a query", "baseURL: http://a/?b\n",
			[]string{`1:1: baseURL: expected a URL without a query, not "http://a/?b"`}},
		{"durations", "tombstones: 24\nshutdownTimeout: 2h\nbus: {events: {maxAge: soon}}\n", []string{
			`1:1: tombstones: ` + duration + `, not "24"`,
			`2:1: shutdownTimeout: expected a duration from 1s to 1h, not "2h"`,
			`3:16: bus.events.maxAge: ` + duration + `, not "soon"`}},
		{"a duration that overflows", "tombstones: 999999d\n",
			[]string{`1:1: tombstones: expected a duration of at most 36500d, not "999999d"`}},
		{"sizes", "maxObjectSize: 1MB\nbus: {events: {maxBytes: 4 gigs}}\nstores: {A: {maxObjectSize: 0}}\n", []string{
			`1:1: maxObjectSize: expected a size from 1 byte to 256KiB, not "1MB"`,
			`2:16: bus.events.maxBytes: ` + size + `, not "4 gigs"`,
			`3:14: stores.A.maxObjectSize: expected a size from 1 byte to 256KiB, not "0"`}},
		{"a size that overflows", "bus: {events: {maxBytes: 9999999999TiB}}\n", []string{
			`1:16: bus.events.maxBytes: expected a size from 1 byte to 1024TiB, not "9999999999TiB"`}},
		{"numbers", "mailers: {m: {type: smtp, host: h, port: smtp}}\nbus: {events: {maxMessages: 1.5}}\n", []string{
			`1:36: mailers.m.port: expected a whole number from 1 to 65535, not "smtp"`,
			`2:16: bus.events.maxMessages: expected a whole number from 1 to 1000000000000, not "1.5"`}},
		{"booleans", "stores: {A: {expose: {list: yes}}}\n",
			[]string{`1:23: stores.A.expose.list: expected true or false, not "yes"`}},
		{"log", "log: {level: verbose, format: xml}\n", []string{
			`1:7: log.level: expected debug, info, warn or error, not "verbose"`,
			`1:23: log.format: expected text or json, not "xml"`}},
		{"redirects", "authentication: {successRedirect: //evil.example, failureRedirect: 'javascript:x', " +
			"registerRedirect: join}\n", []string{
			`1:18: authentication.successRedirect: ` + redirect + `, not "//evil.example"`,
			`1:51: authentication.failureRedirect: ` + redirect + `, not "javascript:x"`,
			`1:84: authentication.registerRedirect: ` + redirect + `, not "join"`}},
		{"a long value is cut", "log: {format: " + strings.Repeat("x", 70) + "}\n", []string{
			`1:7: log.format: expected text or json, not "` + strings.Repeat("x", 60) + `"...`}},
		{"an empty path", "data: ''\n", []string{`1:1: data: expected a path, not ""`}},
	})
}

func TestBus(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"documents", "documents: {openapi: maybe, html: true}\n", []string{
			`1:13: documents.openapi: expected true or false, not "maybe"`,
			`1:29: documents.html: unknown key; expected one of openapi, asyncapi`}},
		{"streams of events",
			"events: {clients: 0, address: -1, heartbeat: 10ms, buffer: 5GiB, maxAge: 1d, client: 1}\n", []string{
				`1:10: events.clients: expected a whole number from 1 to 1000000, not "0"`,
				`1:22: events.address: expected a whole number from 0 to 1000000, not "-1"`,
				`1:35: events.heartbeat: expected a duration from 1s to 10m, not "10ms"`,
				`1:52: events.buffer: expected a size from 1 byte to 4GiB, not "5GiB"`,
				`1:66: events.maxAge: unknown key; did you mean bus.events.maxAge?`,
				`1:78: events.client: unknown key; did you mean clients?`}},
		{"not a NATS server", "bus: {url: [http://a, 'nats://b', c]}\n", []string{
			`1:13: bus.url[0]: expected a URL such as nats://example.com (schemes: nats, tls, ws, wss), not "http://a"`,
			`1:35: bus.url[2]: expected a URL such as nats://example.com (schemes: nats, tls, ws, wss), not "c"`}},
		{"mixed kinds", "bus: {url: 'nats://a,ws://b'}\n", []string{
			"1:7: bus.url: expected either ws and wss, or nats and tls; a client cannot mix them"}},
		{"two authentication methods", "bus: {url: 'nats://a', user: u, password: p, token: t}\n", []string{
			"1:46: bus.token: expected one authentication method, not both user and token"}},
		{"half a login", "bus: {url: 'nats://a', user: u}\n",
			[]string{"1:1: bus: expected both user and password, or neither"}},
		{"half a certificate", "bus: {url: 'nats://a', tls: {cert: testdata/full.yaml}}\n", []string{
			"1:24: bus.tls: expected both cert and key, or neither"}},
		{"credentials that would be ignored", "bus: {token: t}\n", []string{
			"1:7: bus.token: applies only to an external cluster or a server with its own configuration; set bus.url " +
				"or bus.config, or remove this key"}},
		{"a server's configuration and an external server", "bus: {config: testdata/nats.conf, url: 'nats://a'}\n",
			[]string{
				"1:7: bus.config: configures the embedded server, which bus.url replaces; remove one of them"}},
		{"a server's configuration and no address", "bus: {config: testdata/nats.conf, listen: ''}\n", []string{
			"1:35: bus.listen: cannot be empty when bus.config is set; to listen where that file says, " +
				"remove this key"}},
		{"replicas in a single server", "bus: {replicas: 3}\n", []string{
			"1:7: bus.replicas: applies only to an external cluster or a server with its own configuration; set " +
				"bus.url or bus.config, or remove this key"}},
		{"too many replicas", "bus: {url: 'nats://a', replicas: 7}\n", []string{
			`1:24: bus.replicas: expected a whole number from 1 to 5, not "7"`}},
		{"missing files", "bus: {url: 'nats://a', credentials: no.creds, tls: {ca: no.pem}}\n", []string{
			"1:24: bus.credentials: expected a readable file (no such file or directory)",
			`1:53: bus.tls.ca: expected a readable file (no such file or directory), not "no.pem"`}},
	})
}

func TestOwners(t *testing.T) {
	c := mustParse(t, `stores:
  Notes: {policy: owner}
  Pages: {owner: author, indexes: ["author, title"], uuid: client}
  Open: {}
  Users: {policy: owner}
`)
	for name, want := range map[string]struct {
		owner       string
		serverUUIDs bool
		indexes     int
	}{"Notes": {"user", true, 1}, "Pages": {"author", false, 2}, "Open": {"", false, 0}, "Users": {"", true, 0},
		"Idents": {"user", true, 0}} {
		if s := c.Stores[name]; s.Owner != want.owner || s.ServerUUIDs() != want.serverUUIDs ||
			len(s.Indexes) != want.indexes {
			t.Errorf("%s: owner %q, server makes uuids: %t, indexes %v", name, s.Owner, s.ServerUUIDs(), s.Indexes)
		}
	}
}

func TestIdentsAreNotListed(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"by a list", "stores: {Idents: {expose: {list: true}}}\n", []string{
			"1:28: stores.Idents.expose.list: is not for the store of idents: a list would tell the addresses of " +
				"all accounts"}},
	})
}

// Idents have routes that write them only with rules of their own: who asks for them without is not left to find out.
func TestIdentsAreNotWrittenWithoutRules(t *testing.T) {
	const why = ": idents are read by their owner and written by nobody, since logins trust them: remove the key, or " +
		"write rules: a policy with one for "
	checkInvalid(t, []invalidCase{
		{"with the policy of the owner", "stores: {Idents: {policy: owner, expose: {restrict: {update: false}}}}\n",
			[]string{
				"1:54: stores.Idents.expose.restrict.update" + why + "update"}},
		{"without a policy", "stores: {Idents: {expose: {restrict: {create: false, get: false, delete: false}}}}\n",
			[]string{
				"1:39: stores.Idents.expose.restrict.create" + why + "create",
				"1:66: stores.Idents.expose.restrict.delete" + why + "delete"}},
		{"of another name",
			"authentication: {identStore: Keys}\nstores: {Keys: {expose: {restrict: {delete: false}}}}\n", []string{
				"2:37: stores.Keys.expose.restrict.delete" + why + "delete"}},
	})
	for text, want := range map[string]Restrict{
		"stores: {Idents: {expose: {}}}\n": {Create: true, Update: true, Delete: true},
		"stores: {Idents: {policy: owner, expose: {restrict: {update: true, get: " +
			"true}}}}\n": {Create: true, Update: true, Delete: true, Get: true},
		"stores: {Idents: {policy: {update: user.admin == true}, expose: {restrict: {update: " +
			"false}}}}\n": {},
		"stores: {Idents: {policy: {create: user.admin == true}, expose: {restrict: {delete: " +
			"true}}}}\n": {Delete: true},
		"stores: {Users: {expose: {restrict: {update: false, delete: false}}}, Idents: {policy: {default: allow}, " +
			"expose: {}}}\n": {},
	} {
		equal(t, text, mustParse(t, text).Stores["Idents"].Expose.Restrict, want)
	}
}

// A mail by which something is to be done has the link or the token, in each of its bodies.
func TestMailsWithoutLinkAndToken(t *testing.T) {
	const before, after = "authentication: {providers: {email: {", "}}}\n"
	checkInvalid(t, []invalidCase{
		{"validation", before + "html: Welcome, text: '{{.Link}}'" + after, []string{
			"1:38: authentication.providers.email.html: has neither {{.Link}} nor {{.Token}}: nobody could register"}},
		{"others", before +
			"recovery: {text: Hi, html: '{{.Login}}'}, change: {text: Links}, undo: {html: '{{ .Links }}'}" + after,
			[]string{
				"1:49: authentication.providers.email.recovery.text: has neither {{.Link}} nor {{.Token}}: nobody " +
					"could set a new password",
				"1:59: authentication.providers.email.recovery.html: has neither {{.Link}} nor {{.Token}}: nobody " +
					"could set a new password",
				"1:89: authentication.providers.email.change.text: has neither {{.Link}} nor {{.Token}}: nobody " +
					"could confirm a new address",
				"1:110: authentication.providers.email.undo.html: has neither {{.Link}} nor {{.Token}}: nobody could " +
					"undo a change of their address"}},
		{"second factors", before + "login: {codeMail: {text: Hi}}" + after, []string{
			"1:57: authentication.providers.email.login.codeMail.text: lacks {{.Token}}, the code: nobody could " +
				"log in by it"}},
		{"logins", before + "login: {code: true, link: true, codeMail: {html: '{{.Link}}'}, linkMail: {text: Hi}}" +
			after, []string{
			"1:81: authentication.providers.email.login.codeMail.html: lacks {{.Token}}, the code: nobody could " +
				"log in by it",
			"1:112: authentication.providers.email.login.linkMail.text: has neither {{.Link}} nor {{.Token}}: nobody " +
				"could log in by it"}},
	})
	for _, fine := range []string{
		"postValidation: true, html: Welcome", "html: '{{.Token}}'", "html: '', text: '{{ .Link | urlquery }}'",
		"taken: {html: Hi}", "login: {linkMail: {html: Hi}}",
		"recovery: {html: '{{with .Login}}{{$.Token}}{{end}}'}", "html: '{{printf \"{%s}\" .Token}}'",
	} {
		mustParse(t, before+fine+after)
	}
}

func TestMappingsByOwnersThatCannotBe(t *testing.T) {
	const noOwner = "have no owner; add owner to that store, with the property that holds the owner's uuid, or " +
		"remove this key"
	checkInvalid(t, []invalidCase{
		{"neither", "stores: {A: {}, B: {map: {A: {key: a, target: bs, sameOwner: true}}}}\n", []string{
			"1:51: stores.B.map.A.sameOwner: the objects of B " + noOwner,
			"1:51: stores.B.map.A.sameOwner: the objects of A " + noOwner}},
		{"itself", "stores: {A: {map: {A: {key: a, target: bs, sameOwner: true}}}}\n", []string{
			"1:44: stores.A.map.A.sameOwner: the objects of A " + noOwner}},
		{"private", "stores: {A: {owner: me, private: me}, B: {policy: owner, map: {A: {key: a, target: bs, " +
			"sameOwner: true}}}}\n", []string{
			"1:88: stores.B.map.A.sameOwner: me never leaves the server in A: whose objects to delete with a target " +
				"could not be decided; make it readable or remove this key"}},
		{"never read", "stores: {A: {owner: me, fields: {me: {read: \"false\"}}}, B: {policy: owner, map: {A: {key: " +
			"a, target: bs, sameOwner: true}}}}\n", []string{
			"1:106: stores.B.map.A.sameOwner: me never leaves the server in A: whose objects to delete with a target " +
				"could not be decided; make it readable or remove this key"}},
	})
	c := mustParse(t, "stores: {A: {owner: me, map: {Users: {key: a, target: as, sameOwner: true}}}}\n")
	equal(t, "owner of users", c.OwnerField("Users"), "uuid")
	equal(t, "sameOwner", c.Stores["A"].Map["Users"].SameOwner, true)
}

func TestOwnersThatCannotBe(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"of users", "stores: {Users: {owner: boss}}\n", []string{
			"1:18: stores.Users.owner: is not for the user store: every user is their own owner"}},
		{"an array", "stores: {A: {owner: bs}, B: {map: {A: {key: a, target: bs}}}}\n", []string{
			"1:14: stores.A.owner: is the array of a mapping; the owner needs a property of its own"}},
		{"set by the server", "stores: {A: {owner: created, uuid: mine}}\n", []string{
			`1:14: stores.A.owner: expected a property of your own; uuid, created and updated are set by the server, not "created"`,
			`1:30: stores.A.uuid: expected server or client, not "mine"`}},
	})
}
