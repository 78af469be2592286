package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
)

const closedNote = `{"properties":{"title":{"type":"string"},"year":{},"tags":{},"published":{},"slug":{},"secret":{},"author":{},"diary":{}}}`

// Every place of a configuration that names properties is compared with the schema, where the name is: an error of the
// strict check where the schema is closed, else a warning; belfry starts with either, and logs the error.
func TestNamesAreComparedWithSchemas(t *testing.T) {
	const head = "listen: 127.0.0.1:0\nbus: {listen: \"\"}\n"
	store := func(keys string) string {
		return head +
			"stores:\n  Users: {schema: user.json}\n  Notes:\n    expose: {list: true}\n    schema: note.json\n    " +
			keys + "\n"
	}
	for name, c := range map[string]struct{ text, key, says string }{
		"indexes": {store(`indexes: [title, pubished]`), "stores.Notes.indexes[1]",
			`the schema of Notes has no property "pubished"; did you mean published?`},
		"a compound index": {store(`indexes: ["title, -yeaar"]`), "stores.Notes.indexes[0]",
			`"yeaar"; did you mean year?`},
		"elements": {store(`indexes: ["tgas[]"]`), "stores.Notes.indexes[0]", `"tgas"; did you mean tags?`},
		"a part": {store(`indexes: [auhtor.name]`), "stores.Notes.indexes[0]",
			`"auhtor"; did you mean author?`},
		"unique":   {store(`unique: ["title, slgu"]`), "stores.Notes.unique[0]", `did you mean slug?`},
		"private":  {store(`private: [secrt]`), "stores.Notes.private[0]", `did you mean secret?`},
		"readOnly": {store(`readOnly: [yeaar]`), "stores.Notes.readOnly[0]", `did you mean year?`},
		"search": {store(`search: {fields: [titel]}`), "stores.Notes.search.fields[0]",
			`did you mean title?`},
		"the key of a map": {store(`map: {Users: {key: auhtor, target: notes}}`), "stores.Notes.map.Users.key",
			`did you mean author?`},
		"the fields of a map": {store(`map: {Users: {key: author, target: notes, fields: [title, yeaar]}}`),
			"stores.Notes.map.Users.fields[1]", `did you mean year?`},
		"a condition": {store(`map: {Users: {key: author, target: notes, when: source.pubished == true}}`),
			"stores.Notes.map.Users.when",
			`in the expression at 1:1: source.pubished: the schema of Notes has no property "pubished"; did you mean published?`},
		"fields": {store(`fields: {diray: {read: "user != null"}}`), "stores.Notes.fields.diray",
			`did you mean diary?`},
		"a read rule": {store(`fields: {diary: {read: object.pubished == true}}`),
			"stores.Notes.fields.diary.read", `in the expression at 1:1: object.pubished: `},
		"a write rule": {store(`fields: {diary: {write: "user != null && input.titel == 'x'"}}`),
			"stores.Notes.fields.diary.write", `in the expression at 1:17: input.titel: `},
		"create": {store(`policy: {default: allow, create: "input.x == 1"}`), "stores.Notes.policy.create",
			`input.x: the schema of Notes has no property "x"; expected one of author, created, `},
		"get": {store(`policy: {default: allow, get: "has(object.pubished)"}`),
			"stores.Notes.policy.get", `object.pubished: `},
		"update, by index": {store(`policy: {default: allow, update: "true && object['yeaar'] == 1"}`),
			"stores.Notes.policy.update", `object.yeaar: `},
		"delete, by in": {store(`policy: {default: allow, delete: "'yeaar' in object"}`),
			"stores.Notes.policy.delete", `object.yeaar: `},
		"list, in a loop": {store(`policy: {default: allow, list: "object.tags.exists(t, t == object.titel)"}`),
			"stores.Notes.policy.list", `in the expression at 1:28: object.titel: `},
		"the user": {store(`policy: {default: allow, get: "user.id == object.author"}`),
			"stores.Notes.policy.get", `user.id: the schema of Users has no property "id"; did you mean uuid?`},
		"admins": {store(``) + "admins: user.naame == 'x'\n", "admins",
			`user.naame: the schema of Users has no property "naame"; did you mean name?`},
		"audit": {store(``) + "authentication: {audit: user.naame == 'x'}\n", "authentication.audit",
			`did you mean name?`},
		"who needs a factor": {store(``) + "authentication: {mfa: {required: user.naame == 'x'}}\n",
			"authentication.mfa.required", `did you mean name?`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, head)
			for closed, schema := range map[bool]string{true: closedNote,
				false: strings.TrimSuffix(closedNote, "}") + `,"additionalProperties":true}`} {
				p.write("note.json", schema)
				p.write("user.json", fmt.Sprintf(`{"properties":{"name":{}},"additionalProperties":%t}`, !closed))
				loaded := p.load(c.text)
				if err := plan.Check(loaded); err != nil {
					t.Fatalf("it does not start: %v", err)
				}
				warnings := strings.Join(plan.Warnings(loaded), "\n")
				var found config.Problems
				err := plan.CheckStrictly(loaded)
				if !closed {
					if err != nil || !strings.Contains(warnings, c.key+": ") || !strings.Contains(warnings, c.says) {
						t.Errorf("open: %v, warnings %q", err, warnings)
					}
					continue
				}
				if !errors.As(err, &found) || len(found) != 1 || found[0].Key != c.key ||
					!strings.Contains(found[0].Message, c.says) || found[0].Line < 3 || found[0].Column < 1 {
					t.Errorf("closed: %+v, %v", found, err)
				}
				if strings.Contains(warnings, "has no property") {
					t.Errorf("a warning of what is an error: %s", warnings)
				}
			}
		})
	}
}

// Where a binary service takes files in any property, what rules and copies name may be such a property: a warning,
// also of a closed schema. What an index or a search names can't be.
func TestNamesThatMayBeOfFiles(t *testing.T) {
	p := newPlace(t, "")
	p.write("note.json", closedNote)
	for store, want := range map[string]struct{ errors, warnings int }{
		`policy: {default: allow, get: has(object.photos)}`:                                           {0, 1},
		`fields: {photos: {read: user != null}}`:                                                      {0, 1},
		`map: {Users: {key: author, target: notes, fields: [photos], when: "size(source.pics) > 1"}}`: {0, 2},
		`indexes: [photos], private: [pics], search: {fields: [words]}, unique: [slugs]`:              {4, 0},
		`expose: null, fields: {photos: {read: user != null}}`:                                        {1, 0},
	} {
		if !strings.Contains(store, "expose") {
			store = "expose: {list: true}, " + store
		}
		loaded := p.load("stores:\n  Notes: {schema: note.json, " + strings.Replace(store, "expose: null, ", "", 1) +
			"}\nbinaries: {media: {folder: media}}\n")
		var found config.Problems
		if err := plan.CheckStrictly(loaded); err != nil && !errors.As(err, &found) {
			t.Fatal(err)
		}
		if warned := strings.Count(strings.Join(plan.Warnings(loaded), "\n"), "has no property"); len(
			found) != want.errors || warned != want.warnings {
			t.Errorf("%s: %d warnings, %v", store, warned, found)
		}
	}
}

// A schema that no uuid of the server matches is warned of: a client could create nothing.
func TestSchemasThatRefuseTheUUIDsOfTheServer(t *testing.T) {
	p := newPlace(t, "")
	for schema, refuses := range map[string]bool{
		`{"properties":{"uuid":{"type":"string","maxLength":10}},"required":["title"]}`:                                true,
		`{"allOf":[{"properties":{"uuid":{"pattern":"^[a-z]*$"}}}]}`:                                                   true,
		`{"properties":{"uuid":{"type":"string","pattern":"^[0-9a-f-]{36}$"}},"required":["title"],"maxProperties":1}`: false,
		`{"properties":{"title":{}},"additionalProperties":false,"patternProperties":{"^u":false}}`:                    false,
		`{"oneOf":[{"properties":{"uuid":{"maxLength":1}}},{"properties":{"a":{}},"additionalProperties":false}]}`:     false,
	} {
		p.write("note.json", schema)
		for options, server := range map[string]bool{"owner: user": true, "owner: user, uuid: client": false,
			"expose: {}": false} {
			loaded := p.load("stores:\n  Notes: {schema: note.json, " + options + "}\n")
			if err := plan.CheckStrictly(loaded); err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(plan.Warnings(loaded), "\n"); strings.Contains(all,
				"clients can't create objects") != (refuses && server) {
				t.Errorf("%s with %s: %q", schema, options, all)
			}
		}
	}
	p.write("note.json", `{"properties":{"uuid":false}}`)
	if err := plan.Check(p.load("stores:\n  Notes: {schema: note.json}\n")); err == nil ||
		!strings.Contains(err.Error(), "/properties/uuid: is false, and each object has one: none can be created") {
		t.Errorf("uuid: false: %v", err)
	}
}

// What belfry keeps itself, what the schema names, and what nothing is known of is right.
func TestNamesThatAreKnown(t *testing.T) {
	p := newPlace(t, "")
	p.write("note.json",
		`{"properties":{"title":{},"key":{},"team":{}},"patternProperties":{"^x-":{}},"additionalProperties":false}`)
	p.write("more.json",
		`{"$ref":"#/$defs/a","unevaluatedProperties":false,"$defs":{"a":{"allOf":[{"properties":{"title":{}}},{"if":{"required":["b"]},"then":{"properties":{"b":{}}}}]}}}`)
	for name, text := range map[string]string{
		"belfry's own": `
stores:
  Users: {schema: note.json, policy: {get: "user.uuid == object.uuid && user.admin == true && has(user.idents) && !object.disabled"}}
  Notes:
    expose: {list: true}
    owner: user
    schema: note.json
    computed: {total: 1 + 1}
    indexes: [created, "-updated", user, total, uuid, x-rank]
    map: {Notes: {key: key, target: children, fields: [title, total, created]}}
    policy: {default: allow, get: "has(object.children) || has(object.photos) || object._x == 1 || object.total > 1 || user.uuid == object.user"}
binaries: {media: {folder: media, map: {Notes: [photos]}}}`,
		"combined": `
stores:
  Notes: {schema: more.json, indexes: [title, b]}`,
		"without a schema": `
stores:
  Notes: {indexes: [anything], policy: {default: allow, get: "object.what == user.ever"}}`,
		"a schema without names": `
stores:
  Notes: {schema: any.json, indexes: [anything]}`,
		"a variable of a loop": `
stores:
  Notes: {schema: note.json, policy: {default: allow, get: "[{'a': 1}].exists(object, object.a == 1)"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p.write("any.json", `{"type":"object"}`)
			loaded := p.load(text)
			if err := plan.CheckStrictly(loaded); err != nil {
				t.Error(err)
			}
			if all := strings.Join(plan.Warnings(loaded), "\n"); strings.Contains(all, "property") {
				t.Error(all)
			}
		})
	}
	loaded := p.load("admins: user.id == 'x'\n")
	if all := strings.Join(plan.Warnings(loaded), "\n"); plan.CheckStrictly(loaded) != nil ||
		!strings.Contains(all, "admins: in the expression at 1:1: user.id is a property that clients may set; use "+
			"user.uuid to identify the user") {
		t.Errorf("user.id without a schema: %q", all)
	}
}

// A start says in its log what the strict check refuses, and a computed property suggests what may be meant.
func TestStartsLogNamesThatSchemasDoNotHave(t *testing.T) {
	p := newPlace(t, "")
	p.write("note.json", closedNote)
	p.config = p.load("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nstores:\n  Notes: {schema: note.json, indexes: " +
		"[titel]}\n")
	p.stop(p.start())
	if log := p.logged.String(); !strings.Contains(log, "stores.Notes.indexes[0]") ||
		!strings.Contains(log, "did you mean title?") {
		t.Error(log)
	}
	p.write("other.json",
		`{"properties":{"title":{}},"anyOf":[{"required":["titel"]},{}],"additionalProperties":false}`)
	if err := plan.CheckStrictly(p.load("stores:\n  Notes: {schema: other.json, indexes: [titel]}\n")); err == nil ||
		!strings.Contains(err.Error(), "did you mean title?") {
		t.Errorf("a name that is refused: %v", err)
	}
	err := plan.Check(p.load("stores:\n  Notes: {schema: note.json, computed: {x: titel + 'a'}}\n"))
	if err == nil ||
		!strings.Contains(err.Error(), `the schema of the store has no property "titel"; did you mean title?`) {
		t.Error(err)
	}
}

// A schema that says of what belfry maintains what is not true is refused, with the place, and so is one that no object
// matches.
func TestSchemasThatContradictWhatIsMaintained(t *testing.T) {
	p := newPlace(t, "")
	const text = `
stores:
  Users: {schema: user.json}
  Notes:
    owner: by
    schema: note.json
    computed: {total: 1 + 1, state: "'a'"}
    map: {Notes: {key: key, target: children}}
binaries: {media: {folder: media, map: {Notes: [photos]}}}`
	for property, c := range map[string]struct{ schema, says string }{
		"uuid": {`{"type":"integer"}`,
			`note.json:2: /properties/uuid/type: is "integer", and a uuid is a string; remove it`},
		"created": {`{"type":["integer","null"]}`,
			`/properties/created/type: is ["integer","null"], and the time that belfry sets is a string`},
		"updated":  {`{"const":"now"}`, `/properties/updated/const: is not true of the time that belfry sets`},
		"by":       {`{"enum":["ada","bob"]}`, `/properties/by/enum: is not true of the uuid of the owner`},
		"children": {`{"type":"object"}`, `/properties/children/type: is "object", and the mapped array is an array`},
		"photos": {`{"type":"array","items":{"properties":{"mimetype":{"enum":["image/png"]}}}}`,
			`/properties/photos/items/properties/mimetype/enum: is not true of the mimetype of a file`},
		"total": {`{"type":"string"}`, `/properties/total/type: is "string", and the computed value is an integer`},
		"state": {`{"enum":[1]}`, `/properties/state/enum`},
		"title": {`{"type":"integer"}`, ``},
	} {
		p.write("user.json", `{}`)
		p.write("note.json", "{\"properties\":{\n"+fmt.Sprintf(`%q:%s,"key":{}}}`, property, c.schema))
		err := plan.Check(p.load(text))
		if c.says == "" &&
			err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), "stores.Notes.schema: ") ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", property, err, c.says)
		}
	}
	p.write("note.json", `{"type":"array"}`)
	if err := plan.Check(p.load(text)); err == nil ||
		!strings.Contains(err.Error(), "a store holds objects: none can be created") {
		t.Errorf("a schema of arrays: %v", err)
	}
	p.write("note.json",
		`{"required":["uuid","created","by","children","photos","total","_x"],"properties":{"key":{}},"additionalProperties":false}`)
	if err := plan.Check(p.load(text)); err != nil {
		t.Errorf("what is maintained is there: %v", err)
	}
	p.write("note.json", `{"required":["title"],"properties":{"key":{}},"additionalProperties":false}`)
	if err := plan.Check(p.load(text)); err == nil || !strings.Contains(err.Error(),
		`/required: has "title", which additionalProperties refuses: no object can be created`) {
		t.Errorf("what is required and refused: %v", err)
	}
	p.write("note.json", `{}`)
	p.write("user.json",
		`{"properties":{"admin":{"const":true},"idents":{"type":"string"},"password":{"type":"null"}}}`)
	err := plan.Check(p.load(text))
	for _, says := range []string{"/properties/admin/const", "/properties/idents/type", "/properties/password/type"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("users: %v, want %s", err, says)
		}
	}
	p.write("user.json", `{}`)
	p.write("note.json", `{"properties":{"photos":{"maxItems":3},"by":{"pattern":"x"}}}`)
	if all := strings.Join(plan.Warnings(p.load(text)), "\n"); !strings.Contains(all,
		"stores.Notes.schema: photos is maintained by belfry, so /properties/photos/maxItems in") ||
		!strings.Contains(all, "/properties/by/pattern") {
		t.Errorf("limits of what is not judged: %q", all)
	}
}
