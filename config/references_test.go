package config

import (
	"strings"
	"testing"
)

const own = "expected a property of your own; uuid, created and updated are set by the server"

func TestStores(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"names", "stores: {1a: {}, a.b: {}, '': {}}\n", []string{
			"1:10: stores.1a: expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter",
			`1:18: stores."a.b": expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter`,
			`1:27: stores."": expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter`}},
		{"names that differ in case alone", "stores: {Books: {}, books: {}, users: {}}\n", []string{
			"1:21: stores.books: differs from Books only in case",
			"1:32: stores.users: differs only in case from Users, which always exists"}},
		{"an unknown backend", "stores: {Books: {backend: mongo}}\nbackends: {m: {type: mongodb}}\n", []string{
			"1:18: stores.Books.backend: no backend with this name; expected one of default, m"}},
		{"an unknown type of backend", "backends: {m: {type: mongo}}\n", []string{
			`1:16: backends.m.type: expected file, mongodb or dynamodb, not "mongo"`}},
		{"one folder for two backends", "backends: {a: {folder: x}, b: {folder: ./y/../x}}\n", []string{
			"1:32: backends.b.folder: is also the folder of backend a"}},
		{"schemas", "stores: {A: {schema: nope.json}, B: {schema: testdata}, C: {schema: ''}}\n", []string{
			`1:14: stores.A.schema: expected a readable file (no such file or directory), not "nope.json"`,
			`1:38: stores.B.schema: expected a regular file, not "testdata"`,
			`1:61: stores.C.schema: expected the path of a file, not ""`}},
		{"policies", "stores: {A: {policy: user != null}, B: {policy: {}}, C: {policy: }, D: {policy: {get: ''}}}\n",
			[]string{
				`1:14: stores.A.policy: expected owner, or one expression each for create, get, update, delete, list, not "user != null"`,
				`1:41: stores.B.policy: is empty; expected owner, or an expression for one of create, get, update, delete, list; without policy everyone may do everything, and {default: allow} says so`,
				`1:58: stores.C.policy: is empty; expected owner, or an expression for one of create, get, update, delete, list; without policy everyone may do everything, and {default: allow} says so`,
				`1:82: stores.D.policy.get: expected a non-empty string, not ""`}},
		{"private properties", "stores: {A: {private: [_x, uuid, a, a], indexes: [a]}}\n", []string{
			`1:24: stores.A.private[0]: expected a property of your own; names that begin with _ are reserved, not "_x"`,
			`1:28: stores.A.private[1]: ` + own + `, not "uuid"`,
			`1:37: stores.A.private[3]: a is listed twice`,
			`1:41: stores.A.indexes: a is private in A; filtering by it would reveal its value`}},
		{"an empty list of properties to search", "stores: {A: {search: {fields: []}}}\n",
			[]string{"1:23: stores.A.search.fields: expected at least one property"}},
		{"statistics of a search", "stores: {A: {search: {fields: [a], statistics: all}}}\n",
			[]string{`1:36: stores.A.search.statistics: expected own or shared, not "all"`}},
		{"unique properties", "stores: {A: {private: [p], unique: [p, 'a, b', 'b, a', 'a, b, c, d, e', '', copies, " +
			"uuid]}, B: {map: {A: {key: a, target: copies}}}, Sessions: {unique: [a]}}\n", []string{
			"1:28: stores.A.unique: p is private in A; that a value is refused would reveal it",
			"1:28: stores.A.unique: copies is the array of a mapping, and arrays can't be unique",
			"1:48: stores.A.unique[2]: is listed twice",
			"1:56: stores.A.unique[3]: expected at most 4 properties",
			`1:73: stores.A.unique[4]: expected a property, or several such as "team, number"`,
			`1:85: stores.A.unique[6]: expected a property of your own; uuid, created and updated are set by the server, not "uuid"`,
			"1:145: stores.Sessions.unique: is not for Sessions, which is belfry's own"}},
		{"titles", "stores: {A: {private: [p], fields: {q: {read: 'false'}, r: {read: user != null}}, title: [p, q, r, " +
			"a.b, uuid, _x, copies]}, B: {map: {A: {key: a, target: copies}}, title: [a, b, c, d, e, f, g, h, i]}, " +
			"Sessions: {title: [a]}}\n", []string{
			"1:83: stores.A.title: p is private in A; a name would reveal its value",
			"1:83: stores.A.title: q is private in A; a name would reveal its value",
			"1:83: stores.A.title: copies is the array of a mapping, and a name is a text",
			`1:100: stores.A.title[3]: expected the name of a top-level property, without dots, not "a.b"`,
			`1:105: stores.A.title[4]: ` + own + `, not "uuid"`,
			`1:111: stores.A.title[5]: expected a property of your own; names that begin with _ are reserved, not "_x"`,
			"1:165: stores.B.title: expected at most 8 properties",
			"1:213: stores.Sessions.title: is not for Sessions, which is belfry's own"}},
		{"indexes", "stores: {A: {indexes: ['', 'a,,b', 'a, a', b, b]}}\n", []string{
			"1:24: stores.A.indexes[0]: expected a property, or several such as \"author, year\"",
			`1:28: stores.A.indexes[1]: expected the name of a top-level property: letters, digits, _ and -, not ""`,
			`1:36: stores.A.indexes[2]: a is listed twice`,
			`1:47: stores.A.indexes[4]: is a duplicate index`}},
		{"fields of indexes", "stores: {A: {private: [p], indexes: ['-a, b.c', 'a, t[]', 'b.c[]', '-t[]', 't[], " +
			"u[]', a.b.c, 'a[', p.x, '-p', 'p[]', 'a, b, c, d, e']}, B: {map: {A: {key: a, target: copies}}}}\n",
			[]string{
				`1:28: stores.A.indexes: p is private in A; filtering by it would reveal its value`,
				`1:28: stores.A.indexes: p is private in A; filtering by it would reveal its value`,
				`1:28: stores.A.indexes: p is private in A; filtering by it would reveal its value`,
				`1:68: stores.A.indexes[3]: expected the elements of an array without a direction: they have no order, not "-t[]"`,
				`1:76: stores.A.indexes[4]: has the elements of two arrays; an index has those of one at most`,
				`1:88: stores.A.indexes[5]: expected a property, or one of the object in it such as address.city, not "a.b.c"`,
				`1:95: stores.A.indexes[6]: expected the name of a top-level property: letters, digits, _ and -, not "a["`,
				`1:119: stores.A.indexes[10]: expected at most 4 properties`}},
		{"elements of mapped arrays",
			"stores:\n  A: {indexes: ['copies[]']}\n  B: {map: {A: {key: a, target: copies}}}\n", []string{
				`2:7: stores.A.indexes: copies is the array of a mapping: its elements are objects, which are not compared`}},
		{"sessions are never exposed", "stores:\n  Sessions: {expose: {}}\n", []string{
			"2:14: stores.Sessions.expose: this store is internal to belfry; remove the key"}},
		{"what belfry alone sets in users", "stores:\n  Users: {fields: {admin: {write: 'true'}, disabled: {read: " +
			"isOwner}}}\n  A: {map: {Users: {key: user, target: disabled}}}\nbinaries: {a: {map: {Users: [admin]}}}\n",
			[]string{
				"2:28: stores.Users.fields.admin.write: is not for a property that belfry alone sets; remove the rule",
				"3:32: stores.A.map.Users.target: belfry alone sets disabled of Users; choose another property",
				"4:22: binaries.a.map.Users: admin of Users is mapped, copied, computed, private or read-only; files cannot " +
					"be attached there"}},
		{"nobody is an admin by mistake", "admins: ''\n", []string{
			`1:1: admins: expected a non-empty string, not ""`}},
		{"nor on the bus", "stores: {Requests: {bus: true}}\n", []string{
			"1:21: stores.Requests.bus: this store is internal to belfry; remove the key"}},
	})
}

func TestMappings(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"an unknown store", "stores:\n  Authors: {}\n  Books:\n    map: {Auhtors: {key: author, target: books}}\n",
			[]string{
				"4:11: stores.Books.map.Auhtors: no store with this name; expected one of Authors, Books, Idents, " +
					"Users"}},
		{"neither key nor target", "stores: {A: {map: {A: {}}}}\n", []string{
			"1:20: stores.A.map.A.key: is missing; expected the property that holds the target's uuid",
			"1:20: stores.A.map.A.target: is missing; expected the property of the target that holds the copies, " +
				"or aggregates"}},
		{"properties of the server", "stores: {A: {map: {A: {key: uuid, target: created, fields: '_x, a.b'}}}}\n",
			[]string{
				`1:24: stores.A.map.A.key: ` + own + `, not "uuid"`,
				`1:35: stores.A.map.A.target: ` + own + `, not "created"`,
				`1:52: stores.A.map.A.fields: expected a property of your own; names that begin with _ are reserved, not "_x"`,
				`1:52: stores.A.map.A.fields: expected the name of a top-level property, without dots, not "a.b"`}},
		{"names that are none", "stores: {A: {map: {A: {key: '', target: 'a b', fields: 'a,,b'}}}}\n", []string{
			`1:24: stores.A.map.A.key: expected the name of a top-level property: letters, digits, _ and -, not ""`,
			`1:33: stores.A.map.A.target: expected the name of a top-level property: letters, digits, _ and -, not "a b"`,
			`1:48: stores.A.map.A.fields: expected the name of a top-level property: letters, digits, _ and -, not ""`}},
		{"limits", "stores: {A: {map: {A: {key: a, target: b, limit: 0}}}, B: {map: {B: {key: a, target: b, limit: " +
			"100001}}}}\n", []string{
			`1:43: stores.A.map.A.limit: expected a whole number from 1 to 100000, not "0"`,
			`1:89: stores.B.map.B.limit: expected a whole number from 1 to 100000, not "100001"`}},
		{"two into one array",
			"stores:\n  A: {}\n  B: {map: {A: {key: a, target: all}}}\n  C: {map: {A: {key: a, target: all}}}\n",
			[]string{
				"4:25: stores.C.map.A.target: all of A is already the target of stores.B.map.A"}},
		{"one into the array of the default mapping",
			"stores:\n  Badges: {map: {Users: {key: user, target: idents}}}\n  Idents: {}\n", []string{
				"3:3: stores.Idents.map.Users.target: idents of Users is already the target of " +
					"stores.Badges.map.Users"}},
		{"a copy of copies", "stores:\n  A: {map: {C: {key: bs, target: as, fields: 'x, bs'}}}\n  B: {map: {A: {key: " +
			"a, target: bs}}}\n  C: {}\n", []string{
			"2:17: stores.A.map.C.key: bs is an array that a mapping maintains; copies of it would not be updated",
			"2:38: stores.A.map.C.fields: bs is an array that a mapping maintains; copies of it would not be updated"}},
		{"private properties",
			"stores:\n  A: {private: [s, k], map: {B: {key: k, target: t, fields: s}}}\n  B: {private: t}\n", []string{
				"2:34: stores.A.map.B.key: k is private in A and cannot be mapped",
				"2:42: stores.A.map.B.target: t is private in B; clients could not read the copies",
				"2:53: stores.A.map.B.fields: s is private in A and cannot be mapped"}},
		{"a password", "stores: {Users: {private: [], map: {Users: {key: boss, target: team, fields: password}}}}\n",
			[]string{
				"1:70: stores.Users.map.Users.fields: password is private in Users and cannot be mapped"}},
	})
}

// Rules for fields contradict neither the short forms nor what belfry itself writes, and a mapping copies nothing that
// a rule hides unless the array has a rule too.
func TestRulesForFields(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"form", "stores: {A: {fields: {a: {}, b: {reed: x}, uuid: {read: x}, c: {read: ''}}}}\n", []string{
			"1:23: stores.A.fields.a: is empty; expected an expression for read, write or both",
			"1:34: stores.A.fields.b.reed: unknown key; did you mean read?",
			"1:44: stores.A.fields.uuid: expected a property of your own; uuid, created and updated are set by " +
				"the server",
			`1:65: stores.A.fields.c.read: expected a non-empty string, not ""`}},
		{"short forms", "stores: {A: {fields: {a: {read: x}, b: {write: x}}, private: a, readOnly: b}}\n", []string{
			"1:23: stores.A.fields.a: is private as well, which is short for a rule; remove one of them",
			"1:37: stores.A.fields.b: is in readOnly as well, which is short for a rule; remove one of them"}},
		{"arrays and owners", "stores: {A: {fields: {bs: {read: x, write: x}, user: {write: x}}, policy: owner}, B: " +
			"{map: {A: {key: a, target: bs}}}}\n", []string{
			"1:37: stores.A.fields.bs.write: is not for the array of a mapping, which alone writes it; remove the rule",
			"1:55: stores.A.fields.user.write: is not for the owner, which the server sets; remove the rule"}},
		{"an index by what no one reads", "stores: {A: {fields: {a: {read: \"false\"}}, indexes: [a]}}\n", []string{
			"1:44: stores.A.indexes: a is private in A; filtering by it would reveal its value"}},
		{"copies", "stores:\n  A: {fields: {s: {read: x}, k: {read: x}, o: {read: 'true'}}, map: {B: {key: " +
			"k, target: " +
			"t, fields: 's, o'}}}\n  B: {}\n", []string{
			"2:74: stores.A.map.B.key: k has a read rule in A, which the copies don't follow; say who may read them: " +
				"add a read rule for t to stores.B.fields",
			"2:93: stores.A.map.B.fields: s has a read rule in A, which the copies don't follow; say who may read " +
				"them: add a read rule for t to stores.B.fields"}},
	})
	checkInvalid(t, []invalidCase{
		{"unique values",
			"stores: {A: {fields: {a: {read: x}, b: {read: \"false\"}, c: {read: \"true\"}}, unique: ['a, c', " +
				"b, c]}}\n", []string{
				"1:77: stores.A.unique: a has a read rule in A; that a value is refused would reveal it to those who " +
					"may not read it: remove the rule, or the property here",
				"1:77: stores.A.unique: b is private in A; that a value is refused would reveal it"}},
		{"owners", "stores:\n  A: {owner: o, fields: {o: {read: x}}, map: {B: {key: k, target: t, sameOwner: " +
			"true}}}\n  B: {owner: p}\n", []string{
			"2:70: stores.A.map.B.sameOwner: not everyone may read o in A, and an entry reveals it; say who may read " +
				"the entries: add a read rule for t to stores.B.fields"}},
	})
	mustParse(t, "stores:\n  A: {fields: {s: {read: x}}, map: {B: {key: k, target: t, fields: s}}}\n  B: {fields: "+
		"{t: {read: x}}}\n")
}

// Nothing else sets a computed property.
func TestComputedProperties(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"form", "stores: {A: {computed: {uuid: '1', _a: '1', b: '', c: [x]}}}\n", []string{
			"1:25: stores.A.computed.uuid: " + own,
			"1:36: stores.A.computed._a: expected a property of your own; names that begin with _ are reserved",
			`1:45: stores.A.computed.b: expected a non-empty string, not ""`,
			"1:52: stores.A.computed.c: expected a single value, not a list"}},
		{"what belfry sets",
			"stores: {Users: {computed: {admin: 'true', password: '\"x\"'}}, Sessions: {computed: {a: '1'}}}\n",
			[]string{
				"1:29: stores.Users.computed.admin: belfry alone sets it; choose another property",
				"1:44: stores.Users.computed.password: belfry alone sets it; choose another property",
				"1:74: stores.Sessions.computed: is not for a store whose objects belfry manages"}},
		{"other writers", "stores: {A: {computed: {bs: '1', o: '1', r: '1', w: '1'}, owner: o, readOnly: r, fields: " +
			"{w: {write: x}}}, B: {map: {A: {key: a, target: bs}}}}\n", []string{
			"1:25: stores.A.computed.bs: is the array of a mapping, which alone writes it; choose another property",
			"1:34: stores.A.computed.o: is the owner, which the server sets; choose another property",
			"1:42: stores.A.computed.r: is in readOnly as well; clients never set a computed property, so " +
				"remove it there",
			"1:50: stores.A.computed.w: has a write rule, and clients never set a computed property; remove the rule"}},
	})
	c := mustParse(t, "stores: {A: {computed: {n: size(bs)}}, B: {map: {A: {key: a, target: bs}}}}\n")
	if got, want := c.Stores["A"].Computed["n"], "size(bs)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The idents of a user are for the user alone, unless the configuration says otherwise.
func TestIdentsOfUsersAreForTheUserAlone(t *testing.T) {
	for content, want := range map[string]Field{
		"": {Read: "isOwner"},
		"stores: {Users: {policy: {get: 'true'}}}\n":            {Read: "isOwner"},
		"stores: {Users: {fields: {idents: {read: 'true'}}}}\n": {Read: "true"},
	} {
		equal(t, content, mustParse(t, content).Stores["Users"].Fields["idents"], want)
	}
	// Another store has no owner whom belfry knows: who may read the addresses there has to be said.
	checkInvalid(t,
		[]invalidCase{{"another store",
			"stores:\n  Idents: {map: {Profiles: {key: user, target: logins}}}\n  Profiles: {}\n", []string{
				"2:40: stores.Idents.map.Profiles.target: holds the uuids of idents, which contain addresses; say " +
					"who may read them: add a read rule for logins to stores.Profiles.fields"}}})
	mustParse(t, "stores:\n  Idents: {map: {Profiles: {key: user, target: logins}}}\n  Profiles: {fields: {logins: "+
		"{read: 'user != null'}}}\n")
	named := mustParse(t, "stores: {Logins: {map: {People: {key: user, target: ways}}}}\nauthentication: {userStore: "+
		"People, identStore: Logins}\n")
	equal(t, "renamed", named.Stores["People"].Fields, map[string]Field{"ways": {Read: "isOwner"}})
}

func TestRoutes(t *testing.T) {
	expected := func(form string) string { return "expected a path " + form + ", such as /books" }
	checkInvalid(t, []invalidCase{
		{"malformed", "stores: {A: {expose: {url: a}}, B: {expose: {url: /b/}}, C: {expose: {url: '/c/:uuid'}}, D: " +
			"{expose: {url: /d/..}}}\n", []string{
			`1:23: stores.A.expose.url: ` + expected("that begins with /") + `, not "a"`,
			`1:46: stores.B.expose.url: ` + expected("without / at its end") + `, not "/b/"`,
			`1:71: stores.C.expose.url: ` + expected("of letters, digits and . _ ~ -") + `, not "/c/:uuid"`,
			`1:103: stores.D.expose.url: ` + expected("of letters, digits and . _ ~ -") + `, not "/d/.."`}},
		{"two stores", "stores: {A: {expose: {url: /b}}, B: {expose: {}}, C: {expose: {url: /b/c}}}\n", []string{
			"1:38: stores.B.expose.url: /b overlaps with /b of stores.A",
			"1:64: stores.C.expose.url: /b/c overlaps with /b of stores.A"}},
		{"reserved", "stores: {Auth: {expose: {}}, B: {expose: {url: /metrics/b}}, C: {expose: {url: /binary}}, D: " +
			"{expose: {url: /openapi.json}}}\n", []string{
			"1:17: stores.Auth.expose.url: /auth overlaps with /auth of belfry itself",
			"1:43: stores.B.expose.url: /metrics/b overlaps with /metrics of belfry itself",
			"1:75: stores.C.expose.url: /binary overlaps with /binary of the binary services",
			"1:104: stores.D.expose.url: /openapi.json overlaps with /openapi.json of belfry itself"}},
		{"a binary service", "binaries: {a: {}, b: {}, c: {expose: {url: /books}}}\nstores: {Books: {expose: {}}}\n",
			[]string{
				"1:19: binaries.b.expose.url: /binary overlaps with /binary of binaries.a",
				"2:18: stores.Books.expose.url: /books overlaps with /books of binaries.c"}},
	})
}

func TestInterceptors(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"form", "stores: {A: {intercept: {save: [{}, {name: 'a.b'}, {name: a, timeout: 0s, onError: ignore}]}}}\n",
			[]string{
				"1:33: stores.A.intercept.save[0].name: is missing; expected the name that the interceptor " +
					"registers under",
				`1:38: stores.A.intercept.save[1].name: expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter, not "a.b"`,
				`1:62: stores.A.intercept.save[2].timeout: expected a duration from 1ms to 1m, not "0s"`,
				`1:75: stores.A.intercept.save[2].onError: expected reject or accept, not "ignore"`}},
		{"twice", "stores: {A: {intercept: {get: [{name: a}, {name: a}], save: [{name: a}]}}}\n", []string{
			"1:44: stores.A.intercept.get[1].name: is already an interceptor of get"}},
		{"register", "stores: {A: {intercept: {register: [{name: a}]}}, Users: {intercept: {register: [{name: a}]}}}\n",
			[]string{
				"1:26: stores.A.intercept.register: is called for the user store only, which is Users"}},
	})
}

func TestAuthentication(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"one store for two", "authentication: {identStore: Users}\n", []string{
			"1:18: authentication.identStore: is also the user store; users and idents need separate stores"}},
		{"the store of sessions", "authentication: {userStore: Sessions}\n", []string{
			"1:18: authentication.userStore: is an internal store of belfry; choose another name"}},
		{"hosts", "hosts: [ok, '*', 'a:80', 'http://a', '*.a', '::1', '[::1]:80', a..b]\n", []string{
			`1:18: hosts[2]: expected a name such as app.example.com, or an address, without scheme and port, not "a:80"`,
			`1:26: hosts[3]: expected a name such as app.example.com, or an address, without scheme and port, not "http://a"`,
			`1:38: hosts[4]: expected a name such as app.example.com, or an address, without scheme and port, not "*.a"`,
			`1:52: hosts[6]: expected a name such as app.example.com, or an address, without scheme and port, not "[::1]:80"`,
			`1:64: hosts[7]: expected a name such as app.example.com, or an address, without scheme and port, not "a..b"`}},
		{"metrics", "listen: 127.0.0.1:8080\nmetrics: {listen: '127.0.0.1:8080', token: short}\n", []string{
			`2:11: metrics.listen: is also the address of listen; metrics have a port of their own`,
			`2:37: metrics.token: expected at least 16 characters, or nothing for no token`}},
		{"the port of the bus for metrics",
			"bus: {listen: '127.0.0.1:4000'}\nmetrics: {listen: '127.0.0.1:4000', token: 'a token with spaces'}\n",
			[]string{
				`2:11: metrics.listen: is also the address of bus.listen; metrics have a port of their own`,
				`2:37: metrics.token: expected printable ASCII characters without spaces`}},
		{"guards", "proxies: [10.0.0.1, 10.1.2.3/8, x]\nauthentication: {limits: {address: -1, acount: 1}, " +
			"trustedOrigins: ['https://a.example/x']}\n", []string{
			`1:33: proxies[2]: expected an address such as 10.0.0.1 or a network such as 10.0.0.0/8, not "x"`,
			`2:27: authentication.limits.address: expected a whole number from 0 to 1000000, not "-1"`,
			`2:40: authentication.limits.acount: unknown key; did you mean account?`,
			`2:69: authentication.trustedOrigins[0]: expected an origin such as https://app.example.com, without a path, not "https://a.example/x"`}},
		{"redirects", "authentication:\n  redirects: [https://a.example/x/, 'http://[::1]/x', a.example:/x, " +
			"http://a.example/x, http://127.0.0.1:80/x, http://localhost/x, 'https://a.example/x#y', " +
			"https://u@a.example/, 'https://*.a.example/', https:/x, https://a.example, https://a.example/../x, " +
			"app:/x, javascript:x, A.example:/x, /x]\n", []string{
			`2:69: authentication.redirects[3]: expected https; http is for programs on the user's machine alone: http://127.0.0.1/path or http://[::1]/path, not "http://a.example/x"`,
			`2:89: authentication.redirects[4]: leave out the port: any port of the loopback interface is accepted, not "http://127.0.0.1:80/x"`,
			`2:112: authentication.redirects[5]: expected https; http is for programs on the user's machine alone: http://127.0.0.1/path or http://[::1]/path, not "http://localhost/x"`,
			`2:132: authentication.redirects[6]: a redirect has no fragment (#), not "https://a.example/x#y"`,
			`2:157: authentication.redirects[7]: a redirect has no user or password`,
			`2:179: authentication.redirects[8]: a redirect has no wildcards: name each, not "https://*.a.example/"`,
			`2:203: authentication.redirects[9]: expected a host, not "https:/x"`,
			`2:213: authentication.redirects[10]: expected a scheme in lower case and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in, not "https://a.example"`,
			`2:232: authentication.redirects[11]: the path has "." or ".." or an empty segment, not "https://a.example/../x"`,
			`2:256: authentication.redirects[12]: a scheme of one's own is a domain name in reverse, such as com.example.app:/signed-in, not "app:/x"`,
			`2:264: authentication.redirects[13]: expected a scheme in lower case and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in, not "javascript:x"`,
			`2:278: authentication.redirects[14]: expected a scheme in lower case and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in, not "A.example:/x"`,
			`2:292: authentication.redirects[15]: expected a scheme in lower case and a path, such as https://app.example.com/signed-in or com.example.app:/signed-in, not "/x"`,
		}},
		{"e-mail", "authentication: {providers: {email: {from: me, subject: \"a\\nBcc: b\", mailer: smpt, " +
			"skipEmailValidation: true}}}\n", []string{
			`1:38: authentication.providers.email.from: expected an address such as Belfry <no-reply@example.com>, not "me"`,
			`1:48: authentication.providers.email.subject: expected a single line, not "a\nBcc: b"`,
			`1:70: authentication.providers.email.mailer: no mailer with this name; the only one is default`,
			`1:84: authentication.providers.email.skipEmailValidation: requires postValidation: true; otherwise nobody could register`}},
		{"providers", "authentication: {providers: {gitlub: {clientID: a}, github: {clientID: a, scope: b}, me: " +
			"{type: oidc}, keys: {type: oidc}, o: {type: saml, issuer: i}}}\n", []string{
			"1:30: authentication.providers.gitlub: unknown provider; expected one of email, github, google, " +
				"facebook, amazon, gitlab, discord, linkedin, apple, microsoft, slack, twitter, oidc; a provider " +
				"with any other name needs type: oidc",
			"1:53: authentication.providers.github.clientSecret: is missing or empty although clientID is set",
			"1:75: authentication.providers.github.scope: expected a list, such as [a, b], not a single value",
			"1:86: authentication.providers.me: is the name of a route below /auth; choose another name for " +
				"the provider",
			"1:104: authentication.providers.keys: is the name of a route below /auth; choose another name for " +
				"the provider",
			`1:128: authentication.providers.o.type: expected oidc, not "saml"`,
			`1:140: authentication.providers.o.issuer: expected a URL such as https://example.com (schemes: https, http), not "i"`}},
		{"Apple", "authentication: {providers: {apple: {clientID: a}}}\n", []string{
			"1:38: authentication.providers.apple.clientID: needs teamID and keyID: those of the team and of the key " +
				"for Sign in with Apple"}},
		{"Apple without a key", "authentication: {providers: {apple: {clientID: a, teamID: t, keyID: k}}}\n", []string{
			"1:38: authentication.providers.apple.clientID: needs one of privateKey, the content of the file " +
				"AuthKey_k.p8, and privateKeyFile, its path"}},
		{"Apple with two keys", "authentication: {providers: {apple: {clientID: a, teamID: t, keyID: k, privateKey: " +
			"p, privateKeyFile: testdata/full.yaml}}}\n", []string{
			"1:38: authentication.providers.apple.clientID: needs one of privateKey, the content of the file AuthKey_k.p8, and privateKeyFile, its path"}},
		{"Apple with a key in place of its file",
			"authentication: {providers: {apple: {clientID: a, teamID: t, keyID: k, privateKeyFile: hunter2}}}\n",
			[]string{
				"1:72: authentication.providers.apple.privateKeyFile: expected a readable file (no such file or " +
					"directory)"}},
		{"Microsoft and others", "authentication: {providers: {microsoft: {clientID: a, tenant: contoso.example}, " +
			"slack: {clientID: a, tokens: true, profileURL: b}, gitlab: {type: saml}, discord: {baseURL: " +
			"'https://a'}}}\n", []string{
			`1:30: authentication.providers.microsoft.clientSecret: is missing or empty although clientID is set`,
			`1:55: authentication.providers.microsoft.tenant: expected common, organizations, consumers, or the id of a tenant, such as 9188040d-6c67-4c5b-b112-36a304b66dad (a domain can become another tenant's), not "contoso.example"`,
			`1:81: authentication.providers.slack.clientSecret: is missing or empty although clientID is set`,
			`1:102: authentication.providers.slack.tokens: expected discard or keep, not "true"`,
			`1:116: authentication.providers.slack.profileURL: unknown key; expected one of type, clientID, scope, tokens, authURL, tokenURL, keysURL, issuer, clientSecret`,
			`1:141: authentication.providers.gitlab.type: expected gitlab or oidc, not "saml"`,
			`1:164: authentication.providers.discord.baseURL: unknown key; expected one of type, clientID, clientSecret, scope, tokens, authURL, tokenURL, profileURL`}},
		{"tokens without a key", "authentication: {providers: {github: {clientID: a, clientSecret: b, tokens: keep}, " +
			"google: {tokens: keep}, o: {type: oidc, issuer: 'https://i', clientID: a, tokens: keep}}}\n", []string{
			"1:1: authentication.encryptionKey: is missing although the tokens of github, o are kept; expected 32 " +
				"random bytes in base64, as from: openssl rand -base64 32"}},
		{"wrong keys", "authentication: {encryptionKey: [hunter2, \"" + strings.Repeat("A", 43) + "\", \"" +
			strings.Repeat("A", 42) + "B\"]}\n", []string{
			"1:34: authentication.encryptionKey[0]: expected 32 random bytes in base64, as from: openssl rand " +
				"-base64 32",
			"1:90: authentication.encryptionKey[2]: expected 32 random bytes in base64, as from: openssl rand " +
				"-base64 32"}},
	})
}

// A provider was a name of the user's choice before it was built in: with type: oidc it still is, with the ids of
// before.
func TestBuiltInProvidersCanBeAnyOpenIDConnectProvider(t *testing.T) {
	key := strings.Repeat("A", 43)
	c, err := Parse("x", []byte(`
authentication:
  encryptionKey: ["`+key+`=", `+strings.Repeat("_", 42)+`8]
  providers:
    gitlab: {type: oidc, issuer: "https://git.example.org", clientID: a, tokens: keep}
    apple: {type: apple, clientID: b, teamID: t, keyID: k, privateKey: p, tokens: keep}
    microsoft: {clientID: c, clientSecret: s, tenant: organizations}
    slack: {clientID: d, clientSecret: s, issuer: "http://localhost/slack", scope: [openid]}
    linkedin: {}
    discord: {clientID: e, clientSecret: s, tokens: keep}
`), environment)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Authentication
	equal(t, "providers", a.Providers(), []string{"apple", "discord", "gitlab", "microsoft", "slack"})
	equal(t, "keeping", a.Keeping(), []string{"apple", "discord", "gitlab"})
	equal(t, "gitlab", a.OIDC,
		map[string]OIDC{"gitlab": {Issuer: "https://git.example.org", ClientID: "a", KeepTokens: true}})
	equal(t, "apple", a.Apple, &Apple{Site{ClientID: "b", KeepTokens: true}, "t", "k", "p", ""})
	equal(t, "microsoft", a.Microsoft, &Microsoft{"organizations", "", Site{ClientID: "c", ClientSecret: "s"}})
	equal(t, "slack", a.Slack,
		&Site{ClientID: "d", ClientSecret: "s", Issuer: "http://localhost/slack", Scope: []string{"openid"}})
	equal(t, "keys", a.EncryptionKeys, []Secret{Secret(make([]byte, 32)), Secret(strings.Repeat("\xff", 32))})
	shown := c.Shown()
	for _, part := range []string{key, "___", "privateKey: p"} {
		if strings.Contains(shown, part) {
			t.Errorf("%s is shown: %s", part, shown)
		}
	}
	for _, part := range []string{"tokens: keep", "teamID: t", "tenant: organizations"} {
		if !strings.Contains(shown, part) {
			t.Errorf("%s is not shown: %s", part, shown)
		}
	}
}

func TestMailersAndBinaries(t *testing.T) {
	checkInvalid(t, []invalidCase{
		{"mailers", "mailers: {a: {type: pigeon}, b: {type: smtp, tls: true, password: p}}\n", []string{
			`1:15: mailers.a.type: expected file or smtp, not "pigeon"`,
			`1:30: mailers.b.host: is missing; expected the mail server, such as smtp.example.com`,
			`1:46: mailers.b.tls: expected starttls, tls or none, not "true"`,
			`1:57: mailers.b.password: needs user`}},
		{"binaries of belfry's own stores", "binaries: {a: {map: {Sessions: [x], Idents: [y]}}}\n", []string{
			"1:22: binaries.a.map.Sessions: belfry manages the objects of this store; files cannot be attached to them",
			"1:37: binaries.a.map.Idents: belfry manages the objects of this store; files cannot be attached to them"}},
		{"no properties of files", "stores: {A: {}, B: {}}\nbinaries: {a: {map: {A: , B: {}}}}\n", []string{
			"2:22: binaries.a.map.A: expected the properties that files can be attached to, such as [pictures]",
			"2:27: binaries.a.map.B: expected the properties that files can be attached to, such as [pictures]"}},
		{"limits of properties of files", "stores: {Books: {computed: {price: \"1\"}}}\nbinaries: {a: {maxSize: 1MiB, map: " +
			"{Books: {x: {maxSize: 2MiB, types: pictures}, y: 1, price: {maxsize: 1}, -z: {}}}}}\n", []string{
			"2:37: binaries.a.map.Books: price of Books is mapped, copied, computed, private or read-only; files cannot " +
				"be attached there",
			"2:49: binaries.a.map.Books.x.maxSize: expected at most maxSize of the service, 1MiB: raise that, or lower this",
			`2:64: binaries.a.map.Books.x.types: expected a media type, as application/pdf, or all of a kind, as image/*, not "pictures"`,
			`2:82: binaries.a.map.Books.y: expected keys with values, not a single value`,
			`2:96: binaries.a.map.Books.price.maxsize: unknown key; did you mean maxSize?`,
			`2:109: binaries.a.map.Books.-z: expected the name of a top-level property: letters, digits, _ and -`}},
		{"types of a property that no file of the service has", "stores: {Books: {}}\nbinaries: {a: {types: image/*, map: " +
			"{Books: {x: {types: [image/png, text/plain]}}}}}\n", []string{
			"2:50: binaries.a.map.Books.x.types: no file of the type text/plain is of the types of the service, image/*: " +
				"add the type there, or remove it here"}},
		{"quotas below what one file may have", "binaries: {a: {quota: {user: 1MiB, address: -1, all: 1}}}\n", []string{
			"1:24: binaries.a.quota.user: expected at least maxSize, 10MiB, or 0 for no limit: a file of that size " +
				"could never be uploaded",
			`1:36: binaries.a.quota.address: expected a size such as 256KiB, 10MiB, 10MB or a number of bytes, or 0 for no limit, not "-1"`,
			"1:49: binaries.a.quota.all: unknown key; expected one of user, address"}},
		{"quotas below what an upload counts", "binaries: {a: {maxSize: 10, quota: {user: 4095}}}\n", []string{
			"1:37: binaries.a.quota.user: expected at least 4KiB, which an upload counts at least, or 0 for no limit"}},
		{"binaries", "binaries: {a: {map: {Bokos: [x], Users: [idents, password, uuid]}}, b: {type: S3}, c: {type: " +
			"S3Storage, expose: {url: /c}, presign: 8d}}\n", []string{
			"1:22: binaries.a.map.Bokos: no store with this name; expected one of Idents, Users",
			"1:34: binaries.a.map.Users: idents of Users is mapped, copied, computed, private or read-only; files cannot be " +
				"attached there",
			"1:34: binaries.a.map.Users: password of Users is mapped, copied, computed, private or read-only; files cannot " +
				"be attached there",
			`1:60: binaries.a.map.Users[2]: ` + own + `, not "uuid"`,
			"1:69: binaries.b.expose.url: /binary overlaps with /binary of binaries.a",
			`1:73: binaries.b.type: expected FileStorage or S3Storage, not "S3"`,
			"1:84: binaries.c.bucket: is missing; expected the name of a bucket",
			`1:124: binaries.c.presign: expected a duration of 0s (none), or from 1s to 7d, not "8d"`}},
	})
}
