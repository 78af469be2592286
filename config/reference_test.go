package config

import "testing"

func TestReferencesAndCopies(t *testing.T) {
	const users = `
  Users: {policy: owner}
`
	for name, of := range map[string]struct{ text, want string }{
		"words": {`stores:
  Recipes: {policy: {get: "true"}}
  Comments: {references: {recipe: Recipes}, copies: {title: recipe.title}}
`, ""},
		"sections": {`stores:
  Recipes: {owner: user, references: {user: Users}, copies: {author: {from: user.name, read: "true"}}}
  Comments: {references: {recipe: {store: Recipes, required: true, onDelete: cascade}}}
` + users, ""},
		"unknown store": {`stores:
  Comments: {references: {recipe: Recipies}}
  Recipes: {}
`, "belfry.yaml:2:27: stores.Comments.references.recipe: no store with this name; expected one of " +
			"Comments, Idents, Recipes, Users"},
		"internal store": {`stores: {Comments: {references: {s: Sessions, i: Idents}}}
`, "belfry.yaml:1:34: stores.Comments.references.s: belfry manages the objects of Sessions; they can't be referred to\n" +
			"belfry.yaml:1:47: stores.Comments.references.i: belfry manages the objects of Idents; they can't be referred to"},
		"neither store nor known keys": {`stores: {A: {references: {a: {}, b: {store: A, on: delete}, c: {store: A, onDelete: erase}}}}
`, "belfry.yaml:1:27: stores.A.references.a.store: is missing; expected the store whose objects the " +
			"property names\n" +
			"belfry.yaml:1:48: stores.A.references.b.on: unknown key; expected one of store, required, " +
			"onDelete\n" +
			"belfry.yaml:1:75: stores.A.references.c.onDelete: expected keep, restrict, clear or cascade, " +
			"not \"erase\""},
		"clear and required": {`stores: {A: {references: {a: {store: A, required: true, onDelete: clear}}}}
`, "belfry.yaml:1:57: stores.A.references.a.onDelete: clear would leave a required property without an object; " +
			"choose restrict or cascade, or remove required"},
		"clear of the owner": {`stores: {A: {owner: user, references: {user: {store: Users, onDelete: clear}}}}
`, "belfry.yaml:1:61: stores.A.references.user.onDelete: clear would leave objects without an owner; choose another value"},
		"the mapping says something else": {`stores:
  A: {}
  B: {references: {a: {store: A, onDelete: keep}}, map: {A: {key: a, target: all, cascade: true}}}
  C: {references: {a: {store: A, onDelete: cascade}}, map: {A: {key: a, target: more, cascade: false}}}
`, "belfry.yaml:3:34: stores.B.references.a.onDelete: is keep, but stores.B.map.A.cascade says that the objects are " +
			"deleted; remove one of them\n" +
			"belfry.yaml:4:34: stores.C.references.a.onDelete: is cascade, but stores.C.map.A.cascade says that the objects " +
			"stay; remove one of them"},
		"sources that are hidden": {`stores:
  A: {private: secret, fields: {price: {read: isOwner}}, owner: user}
  B:
    references: {a: A, u: Users}
    copies: {x: a.secret, y: a.price, z: a.title, admin: u.admin}
`, "belfry.yaml:5:14: stores.B.copies.x: secret is private in A and can't be copied\n" +
			"belfry.yaml:5:27: stores.B.copies.y: price has a read rule in A, which the copy does not " +
			"follow; say who may read the copy: {from: a.price, read: \"true\"}, or another rule\n" +
			"belfry.yaml:5:39: stores.B.copies.z: not everyone may get the objects of A, and the copy would " +
			"show title; say who may read the copy: {from: a.title, read: \"true\"}, or another rule\n" +
			"belfry.yaml:5:51: stores.B.copies.admin: belfry alone sets admin of Users, and it can't be " +
			"copied"},
		"of what": {`stores:
  A: {references: {a: A}, copies: {b: a, c: a.uuid, d: x.title, e: a.b.c, uuid: a.title}}
  B: {copies: {c: a.b}}
`, "belfry.yaml:2:36: stores.A.copies.b: expected a reference of the store and a property of its " +
			"object, such as author.name, not \"a\"\n" +
			"belfry.yaml:2:42: stores.A.copies.c: expected another property: the reference itself holds the " +
			"uuid, not \"a.uuid\"\n" +
			"belfry.yaml:2:53: stores.A.copies.d: no reference x in this store; the only one is a\n" +
			"belfry.yaml:2:65: stores.A.copies.e: expected the name of a top-level property, without dots, " +
			"not \"a.b.c\"\n" +
			"belfry.yaml:2:75: stores.A.copies.uuid: expected a property of your own; uuid, created and " +
			"updated are set by the server\n" +
			"belfry.yaml:3:16: stores.B.copies.c: no reference a in this store; add references to the store: " +
			"{PROPERTY: STORE}"},
		"taken": {`stores:
  A: {}
  B:
    owner: user
    references: {a: A}
    computed: {c: size(object.x)}
    readOnly: r
    fields: {f: {write: "true"}, g: {read: "true"}}
    unique: [u]
    copies: {user: a.t, c: a.t, r: a.t, f: a.t, u: a.t, bs: a.t, g: {from: a.t, read: "true"}}
  C: {references: {a: A}, map: {B: {key: b, target: bs, aggregates: {n: count()}}}, copies: {d: a.cs}}
  D: {map: {A: {key: a, target: cs}}, references: {bs: {store: A}}}
`, "belfry.yaml:9:5: stores.B.unique: u is a copy, which workers write: if another object had the " +
			"value, they could not write it\n" +
			"belfry.yaml:10:14: stores.B.copies.user: is the owner, which the server sets; choose another " +
			"property\n" +
			"belfry.yaml:10:25: stores.B.copies.c: is computed as well; remove one of them\n" +
			"belfry.yaml:10:33: stores.B.copies.r: is in readOnly as well; clients never set a copy, so " +
			"remove it there\n" +
			"belfry.yaml:10:41: stores.B.copies.f: has a write rule, and clients never set a copy; remove " +
			"the rule\n" +
			"belfry.yaml:10:57: stores.B.copies.bs: bs of B is already the target of stores.C.map.B\n" +
			"belfry.yaml:10:81: stores.B.copies.g.read: fields.g.read says it, too; remove one of them\n" +
			"belfry.yaml:11:94: stores.C.copies.d: cs of A is the array of a mapping, too large for copies; " +
			"copy an aggregate, or a property computed from it"},
	} {
		t.Run(name, func(t *testing.T) { wantProblems(t, of.text, of.want) })
	}
}

func TestAggregates(t *testing.T) {
	for name, of := range map[string]struct{ text, want string }{
		"without an array": {`stores:
  A: {}
  B: {map: {A: {key: a, aggregates: {n: count(), s: " sum( x ) ", least: min(created)}}}}
`, ""},
		"neither": {`stores: {A: {map: {A: {key: a, aggregates: {}}}}}
`, "belfry.yaml:1:20: stores.A.map.A.target: is missing; expected the property of the target that " +
			"holds the copies, or aggregates"},
		"functions": {`stores: {A: {map: {A: {key: a, aggregates: 
  {a: avg(x), b: count(x), c: sum(), d: sum(x, y), e: sum(x.y), f: count, uuid: count()}}}}}
`, "belfry.yaml:2:4: stores.A.map.A.aggregates.a: expected count(), sum(property), min(property) or " +
			"max(property), not \"avg(x)\"\n" +
			"belfry.yaml:2:15: stores.A.map.A.aggregates.b: expected count(), sum(property), min(property) " +
			"or max(property), not \"count(x)\"\n" +
			"belfry.yaml:2:28: stores.A.map.A.aggregates.c: expected a property between the parentheses, as " +
			"in sum(price), not \"sum()\"\n" +
			"belfry.yaml:2:38: stores.A.map.A.aggregates.d: expected count(), sum(property), min(property) " +
			"or max(property), not \"sum(x\"\n" +
			"belfry.yaml:2:48: stores.A.map.A.aggregates.\"y)\": expected the name of a top-level property: " +
			"letters, digits, _ and -\n" +
			"belfry.yaml:2:48: stores.A.map.A.aggregates.\"y)\": has no value; set one, or remove the key to " +
			"use its default\n" +
			"belfry.yaml:2:52: stores.A.map.A.aggregates.e: expected the name of a top-level property, " +
			"without dots, not \"sum(x.y)\"\n" +
			"belfry.yaml:2:65: stores.A.map.A.aggregates.f: expected count(), sum(property), min(property) " +
			"or max(property), not \"count\"\n" +
			"belfry.yaml:2:75: stores.A.map.A.aggregates.uuid: expected a property of your own; uuid, " +
			"created and updated are set by the server"},
		"keys of the array": {`stores: {A: {map: {A: {key: a, limit: 3, fields: b, maxBytes: 1MiB, aggregates: {n: count()}}}}}
`, "belfry.yaml:1:32: stores.A.map.A.limit: is about the array of the mapping; add target\n" +
			"belfry.yaml:1:42: stores.A.map.A.fields: is about the array of the mapping; add target\n" +
			"belfry.yaml:1:53: stores.A.map.A.maxBytes: is about the array of the mapping; add target"},
		"hidden values": {`stores:
  A: {private: n, owner: user}
  B: {private: cost, fields: {price: {read: user != null}}, 
    map: {A: {key: a, aggregates: {n: count(), c: sum(cost), p: max(price), user: count()}}}}
`, "belfry.yaml:4:48: stores.B.map.A.aggregates.c: cost is private in B and cannot be mapped\n" +
			"belfry.yaml:4:62: stores.B.map.A.aggregates.p: price has a read rule in B, which the copies " +
			"don't follow; say who may read them: add a read rule for p to stores.A.fields\n" +
			"belfry.yaml:4:77: stores.B.map.A.aggregates.user: the server sets user of A; choose another " +
			"property"},
		"two maintainers": {`stores:
  A: {computed: {c: size(object.x)}, fields: {f: {write: "true"}}, unique: [u]}
  B: {map: {A: {key: a, target: n, aggregates: {n: count(), c: count(), f: count(), u: count()}}}}
  C: {map: {A: {key: a, target: m, aggregates: {n: count()}}}}
`, "belfry.yaml:2:18: stores.A.computed.c: is an aggregate of a mapping, which alone writes it; " +
			"choose another property\n" +
			"belfry.yaml:2:51: stores.A.fields.f.write: is not for an aggregate of a mapping, which alone " +
			"writes it; remove the rule\n" +
			"belfry.yaml:2:68: stores.A.unique: u is an aggregate of a mapping, which workers write: if " +
			"another object had the value, they could not write it\n" +
			"belfry.yaml:3:49: stores.B.map.A.aggregates.n: n of A is already the target of stores.B.map.A\n" +
			"belfry.yaml:4:49: stores.C.map.A.aggregates.n: n of A is already the target of stores.B.map.A"},
	} {
		t.Run(name, func(t *testing.T) { wantProblems(t, of.text, of.want) })
	}
}

// wantProblems checks the problems of a configuration; none if want is empty.
func wantProblems(t *testing.T, text, want string) {
	t.Helper()
	got := ""
	if _, err := Parse("belfry.yaml", []byte(text), environment); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("of\n%s\ngot\n%s\nwant\n%s", text, got, want)
	}
}
