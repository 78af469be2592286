package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/pkg/store/schema"
)

func schemaOf(t *testing.T, text string) *schema.Schema {
	t.Helper()
	compiled, err := schema.Compile("it.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// closedSchemas are schemas as people publish them, which know nothing of belfry and allow nothing else, with an
// instance, a merge patch that keeps it valid, and one that does not.
var closedSchemas = map[string]struct{ schema, instance, patch, wrong string }{
	"a manifest of a package": {
		`{"$schema":"https://json-schema.org/draft-07/schema#","type":"object","required":["name","version"],"additionalProperties":false,"properties":{
			"name":{"type":"string","pattern":"^[a-z-]+$"},"version":{"type":"string"},"private":{"type":"boolean"},"scripts":{"type":"object","additionalProperties":{"type":"string"}},
			"dependencies":{"$ref":"#/definitions/deps"}},"definitions":{"deps":{"type":"object","additionalProperties":{"type":"string"}}}}`,
		`{"name":"left-pad","version":"1.0.0","dependencies":{"x":"^1"}}`, `{"private":true}`, `{"licence":"MIT"}`,
	},
	"a workflow": {
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["on","jobs"],"additionalProperties":false,"properties":{
			"name":{"type":"string"},"on":{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"object"}]},"env":{"type":"object"},
			"jobs":{"type":"object","minProperties":1,"additionalProperties":false,"patternProperties":{"^[_a-zA-Z]":{"type":"object","required":["runs-on"]}}}}}`,
		`{"on":["push"],"jobs":{"test":{"runs-on":"any"}}}`, `{"name":"CI"}`, `{"jobs":{"1":{}}}`,
	},
	"options of a compiler": {
		`{"type":"object","allOf":[{"$ref":"#/$defs/options"},{"$ref":"#/$defs/files"}],"unevaluatedProperties":false,"$defs":{
			"options":{"properties":{"compilerOptions":{"type":"object"},"extends":{"type":"string"}}},
			"files":{"anyOf":[{"required":["files"],"properties":{"files":{"type":"array"}}},{"required":["include"],"properties":{"include":{"type":"array"}}}]}}}`,
		`{"compilerOptions":{"strict":true},"files":["a.ts"]}`, `{"extends":"./base"}`, `{"strict":true}`,
	},
	"rules of a bot": {
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"extends":{"type":"array","items":{"type":"string"}},"$schema":{"type":"string"},
			"schedule":{"type":["string","array"]}},"propertyNames":{"enum":["extends","$schema","schedule","labels"]}}`,
		`{"$schema":"https://example.org/rules.json","extends":["base"]}`, `{"schedule":"weekly"}`, `{"uuids":1}`,
	},
	"services of containers": {
		`{"$schema":"https://json-schema.org/draft/2019-09/schema#","type":"object","properties":{"version":{"type":"string"},
			"services":{"type":"object","patternProperties":{"^[a-z]+$":{"type":"object","properties":{"image":{"type":"string"}},"additionalProperties":false}},"additionalProperties":false}},
			"patternProperties":{"^x-":{}},"additionalProperties":false}`,
		`{"services":{"web":{"image":"nginx"}},"x-note":1}`, `{"version":"3"}`, `{"volume":{}}`,
	},
	"a geographic feature": {
		`{"type":"object","required":["type","geometry","properties"],"properties":{"type":{"const":"Feature"},"id":{"oneOf":[{"type":"number"},{"type":"string"}]},
			"properties":{"oneOf":[{"type":"null"},{"type":"object"}]},"bbox":{"type":"array","minItems":4,"items":{"type":"number"}},
			"geometry":{"oneOf":[{"type":"null"},{"type":"object","required":["type","coordinates"],"properties":{"type":{"enum":["Point"]},"coordinates":{"type":"array","minItems":2}}}]}},"additionalProperties":false}`,
		`{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":null}`, `{"id":7}`,
		`{"crs":"x"}`,
	},
	"an operation of an API": {
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#/$defs/operation","$defs":{"operation":{"type":"object","properties":{"summary":{"type":"string"},
			"responses":{"$ref":"#/$defs/responses"}},"required":["responses"],"$ref":"#/$defs/extensions","unevaluatedProperties":false},
			"responses":{"type":"object","patternProperties":{"^[1-5][0-9X]{2}$":{"type":"object"}},"additionalProperties":false,"minProperties":1},"extensions":{"patternProperties":{"^x-":true}}}}`,
		`{"responses":{"200":{}}}`, `{"x-rate":5,"summary":"s"}`, `{"deprecate":true}`,
	},
	"a map of numbers": {`{"type":"object","additionalProperties":{"type":"integer"}}`, `{"a":1}`, `{"b":2}`,
		`{"c":"x"}`},
	"a map by pattern": {`{"patternProperties":{"":{"type":"array"}}}`, `{"a":[]}`, `{"b":[1]}`, `{"c":{}}`},
	"a map of two": {`{"additionalProperties":{"type":"boolean"},"minProperties":1,"maxProperties":2}`,
		`{"a":true}`, `{"b":true}`, `{"b":true,"c":true}`},
	"capital names": {`{"propertyNames":{"pattern":"^[A-Z]+$"},"minProperties":1}`, `{"A":1}`, `{"B":1}`,
		`{"b":1}`},
	"one of two closed kinds": {
		`{"oneOf":[{"properties":{"kind":{"const":"circle"},"r":{"type":"number"}},"required":["kind","r"],"additionalProperties":false},{"properties":{"kind":{"const":"square"},"a":{"type":"number"}},"required":["kind","a"],"additionalProperties":false}]}`, `{"kind":"circle","r":1}`, `{"r":2.5}`, `{"a":1}`},
	"any of two closed kinds": {
		`{"anyOf":[{"properties":{"a":{}},"additionalProperties":false},{"properties":{"b":{}},"additionalProperties":false}]}`, `{"a":1}`, `{"a":2}`, `{"b":1}`},
	"a condition": {
		`{"properties":{"country":{"enum":["US","NL"]},"code":{"type":"string"}},"required":["country","code"],"if":{"properties":{"country":{"const":"US"}}},"then":{"properties":{"code":{"pattern":"^[0-9]{5}$"}}},"else":{"properties":{"code":{"pattern":"[A-Z]"}}},"unevaluatedProperties":false}`,
		`{"country":"US","code":"12345"}`, `{"country":"NL","code":"1234AB"}`, `{"code":"x"}`,
	},
	"what depends on others": {
		`{"properties":{"card":{"type":"number"},"address":{"type":"string"},"phone":{}},"dependentRequired":{"card":["address"],"address":["created"]},"dependentSchemas":{"phone":{"required":["address","updated"]}},"additionalProperties":false}`,
		`{"card":1,"address":"here"}`, `{"phone":1}`, `{"address":null}`,
	},
	"what must not be": {
		`{"not":{"anyOf":[{"required":["secret"]},{"properties":{"mode":{"const":"off"}},"required":["mode"]}]},"properties":{"mode":{}},"additionalProperties":{"type":"string"}}`, `{"mode":"on","a":"x"}`, `{"mode":"auto"}`, `{"mode":"off"}`},
	"a tree": {
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.org/tree","$dynamicAnchor":"node","type":"object","properties":{"data":true,"children":{"type":"array","items":{"$dynamicRef":"#node"}}},"unevaluatedProperties":false}`, `{"data":1,"children":[{"data":2}]}`, `{"children":[]}`, `{"children":[{"uuid":"x"}]}`},
	"requires what belfry keeps": {
		`{"required":["uuid","created","updated","user","total","files","copies","title"],"properties":{"title":{"type":"string"}},"additionalProperties":false}`, `{"title":"x"}`, `{"title":"y"}`, `{"title":1}`},
	"names what belfry keeps": {
		`{"properties":{"uuid":{"type":"string","maxLength":40},"created":{"type":"string","maxLength":1},"updated":false,"user":{"type":"string","pattern":"^nobody$"},"total":{"type":"number","maximum":0},"files":{"type":"array","maxItems":0},"title":{}},"additionalProperties":false}`,
		`{"title":"x"}`, `{"title":"y"}`, `{"titel":1}`,
	},
	"a log entry": {
		`{"type":"object","required":["level"],"properties":{"level":{"enum":["info","warn"]},"at":{"type":"string"}},"additionalProperties":false,"minProperties":1,"maxProperties":2}`, `{"level":"info"}`, `{"at":"now"}`, `{"level":"loud"}`},
	"an icon": {
		`{"required":["src"],"properties":{"src":{"type":"string"},"sizes":{"type":"string"},"purpose":{"type":"array","uniqueItems":true}},"additionalProperties":false}`, `{"src":"a.png"}`, `{"purpose":["any"]}`, `{"purpose":["a","a"]}`},
	"one of two kinds, of which one has a uuid": {
		`{"oneOf":[{"properties":{"uuid":{"type":"string"},"kind":{"const":"a"}},"required":["kind"],"additionalProperties":false},{"properties":{"kind":{"const":"b"},"n":{}},"required":["kind"],"additionalProperties":false}]}`,
		`{"kind":"b","n":1}`, `{"n":2}`, `{"x":1}`,
	},
	"a closed base without the uuid that is declared": {
		`{"allOf":[{"$ref":"#/$defs/base"}],"properties":{"uuid":{"type":"string"}},"propertyNames":{"maxLength":3},"patternProperties":{"^u":false},"$defs":{"base":{"properties":{"a":{"type":"number"},"b":{}},"additionalProperties":false}}}`,
		`{"a":1}`, `{"b":2}`, `{"c":1}`,
	},
	"a condition about the uuid": {
		`{"if":{"properties":{"uuid":{"pattern":"^never"}},"required":["uuid"]},"then":{"required":["never"]},"not":{"properties":{"uuid":{"type":"integer"}}},"properties":{"a":{}},"unevaluatedProperties":false}`,
		`{"a":1}`, `{"a":2}`, `{"b":1}`,
	},
	"a frozen document": {`{"enum":[{"a":1},{"a":2}]}`, `{"a":1}`, `{"a":2}`, `{"a":3}`},
}

// Valid instances of closed schemas are created, updated and read, with everything that belfry adds; what is not valid
// is refused as ever.
func TestClosedSchemasOfOthers(t *testing.T) {
	t.Parallel()
	for name, c := range closedSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiled := schemaOf(t, c.schema)
			s, _ := open(t, store.Options{
				Schema: compiled, Policy: compile(t, policy.Rules{Owner: true}), Arrays: []string{"copies"},
				Binaries: []string{"files"},
				Reserved: []string{"admin"}, Maintained: []string{"password"}, Computed: total(t),
			})
			ada := as(t.Context(), "ada")
			saved, err := s.Save(ada, parse(t, c.instance), "")
			if err != nil {
				t.Fatal(err)
			}
			// As workers, uploads and logins write.
			mustMutate(t, s,
				saved.UUID, `{"files":[{"hash":"x","name":"a"}],"_binaries":{"files":"media"},"_mark":1,"admin":true,"password":"x"}`)
			now, err := s.Get(t.Context(), saved.UUID)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.NewWorker(s).CompareAndSet(t.Context(), now,
				object.Object{"copies": []byte(`[{"uuid":"c"}]`)}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Update(ada, parse(t, c.patch),
				store.UpdateOptions{UUID: saved.UUID, Patch: true}); err != nil {
				t.Errorf("a valid patch: %v", err)
			}
			read, err := s.Get(ada, saved.UUID)
			if err != nil {
				t.Fatal(err)
			}
			// What was read can be sent back.
			if _, err := s.Update(ada, parse(t, string(read.Body)), store.UpdateOptions{UUID: saved.UUID}); err != nil {
				t.Errorf("what was read: %v", err)
			}
			if _, err := s.Update(ada, parse(t, c.wrong),
				store.UpdateOptions{UUID: saved.UUID, Patch: true}); !errors.Is(err, errs.Invalid) {
				t.Errorf("a wrong patch: %v", err)
			}
			report, err := s.CheckSchema(t.Context(), compiled, nil)
			if err != nil || report.Objects != 1 || report.Failing != 0 {
				t.Errorf("%+v, %v", report, err)
			}
			if err := s.Check(ada, parse(t, c.instance), ""); err != nil {
				t.Errorf("a check: %v", err)
			}
			whole := parse(t, c.instance)
			whole["uuid"] = []byte(`"u"`)
			judge := store.InputValidator(store.Options{Schema: compiled, Policy: compile(t, policy.Rules{Owner: true}),
				Arrays: []string{"copies"}, Binaries: []string{"files"}, Computed: total(t)})
			if err := judge.Validate(t.Context(), whole.Encode()); err != nil {
				t.Errorf("a judge: %v", err)
			}
		})
	}
	if len(closedSchemas) < 20 {
		t.Errorf("%d schemas", len(closedSchemas))
	}
}

func mustMutate(t *testing.T, s *store.Store, uuid, fields string) {
	t.Helper()
	decoded, err := object.Decode([]byte(fields))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Mutate(t.Context(), uuid, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: decoded}, nil
	}); err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
}

// A uuid that the schema names is judged; files where it names something else are.
func TestWhatASchemaNamesIsJudged(t *testing.T) {
	t.Parallel()
	s, _ := open(t,
		store.Options{Schema: schemaOf(t,
			`{"properties":{"uuid":{"pattern":"^[a-z]$"},"title":{"type":"string"}},"patternProperties":{"^n-":{"type":"number"}},"additionalProperties":false}`)})
	save(t, s, "a", `{}`)
	if _, err := s.Save(t.Context(), parse(t, `{}`), "abc"); !errors.Is(err, errs.Invalid) {
		t.Errorf("a uuid that does not match: %v", err)
	}
	for property, refused := range map[string]bool{"title": true, "n-1": true, "photos": false} {
		_, err := s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: object.Object{property: []byte(`[{"hash":"x"}]`),
				store.BinariesField: fmt.Appendf(nil, `{%q:"media"}`, property)}}, nil
		})
		if errors.Is(err, errs.Invalid) != refused || !refused && err != nil {
			t.Errorf("files in %s: %v", property, err)
		}
	}
	// The object with files is written, and when they are gone nothing is left of them.
	update(t, s, "a", `{"title":"x"}`)
	mustMutate(t, s, "a", `{"photos":null}`)
}

// An object that its schema has come to refuse keeps its files and gets new ones, as it is disabled and enabled: the
// schema sees nothing of them. Its size counts.
func TestFilesDoNotDependOnTheSchema(t *testing.T) {
	t.Parallel()
	s, _ := open(t, store.Options{Binaries: []string{"files"}, MaxSize: 500})
	save(t, s, "a", `{"title":1}`)
	s = s.WithOptions(func(o *store.Options) { o.Schema = schemaOf(t, `{"properties":{"title":{"type":"string"}}}`) })
	mustMutate(t, s, "a", `{"files":[{"hash":"x"}],"_binaries":{"files":"media"}}`)
	_, err := s.Mutate(t.Context(), "a", func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"files": []byte(`["` + strings.Repeat("x", 600) + `"]`)}}, nil
	})
	if !errors.Is(err, errs.TooLarge) {
		t.Errorf("files that are too large: %v", err)
	}
}

// What has been configured since an object was written refuses no write that leaves alone what it is about: indexes,
// mappings and unique values that are added over data.
func TestLimitsOfWhatIsAddedSpareWhatIsUnchanged(t *testing.T) {
	t.Parallel()
	list := func(n int, of string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(of, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	deep := strings.Repeat("[", 63) + strings.Repeat("]", 63)
	for name, c := range map[string]struct {
		options     store.Options
		field       string
		value, more string // as it was, and one that is refused
		reordered   string // another text of the same value; "": the value itself
	}{
		"elements": {store.Options{Indexes: indexesOf("tags[]")}, "tags", list(300, `"t%d"`),
			list(301, `"t%d"`), strings.Replace(list(300, `"t%d"`), ",", " ,\n", 3)},
		"elements of a part": {store.Options{Indexes: indexesOf("a.tags[],title")}, "a",
			`{"tags":` + list(2000, `%d`) + `}`, `{"tags":` + list(257, `%d`) + `}`, ""},
		"elements, two indexes": {store.Options{Indexes: indexesOf("tags[]", "title,tags[]")}, "tags",
			list(1000, `"t%d"`), list(999, `"t%d"`), ""},
		"targets": {
			store.Options{Maps: []store.Mapping{{Source: "Books", Target: "Shelves", Key: "shelves", Array: "books"}}},
			"shelves", list(300, `"s%d"`), list(257, `"s%d"`), ""},
		"a list to be unique": {store.Options{Unique: [][]string{{"code"}}}, "code", `["a"]`, `["b"]`, `[ "a" ]`},
		"an object, unique": {store.Options{Unique: [][]string{{"code", "title"}}}, "code", `{"a":1,"b":2}`,
			`{"a":2}`, `{"b":2,"a":1}`},
		"a deep copy": {store.Options{Maps: []store.Mapping{{Source: "Books", Target: "Shelves", Key: "shelf",
			Array: "books", Fields: []string{"deep"}}}}, "deep", deep,
			strings.Repeat("[", 62) + "1" + strings.Repeat("]", 62), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newReopened(t)
			s := p.open(store.Options{})
			save(t, s, "a", fmt.Sprintf(`{"title":"x",%q:%s}`, c.field, c.value))
			p.close()
			s = p.open(c.options)
			update(t, s, "a", `{"title":"y"}`)
			patch := func(text string) error {
				_, err := s.Update(t.Context(), parse(t, text), store.UpdateOptions{UUID: "a", Patch: true})
				return err
			}
			if err := patch(`{"year":1}`); err != nil {
				t.Errorf("a patch of something else: %v", err)
			}
			same := c.value
			if c.reordered != "" {
				same = c.reordered
			}
			if _, err := s.Update(t.Context(), parse(t, fmt.Sprintf(`{%q:%s}`, c.field, same)),
				store.UpdateOptions{UUID: "a"}); err != nil {
				t.Errorf("the same value: %v", err)
			}
			mustMutate(t, s, "a", `{"files":[{"hash":"x"}],"_binaries":{"files":"media"}}`)
			if _, err := s.Update(t.Context(), parse(t, fmt.Sprintf(`{%q:%s}`, c.field, c.more)),
				store.UpdateOptions{UUID: "a"}); !errors.Is(err, errs.Invalid) {
				t.Errorf("another value: %v", err)
			}
			if _, err := s.Save(t.Context(), parse(t, fmt.Sprintf(`{%q:%s}`, c.field, c.value)), ""); !errors.Is(err,
				errs.Invalid) {
				t.Errorf("a new object: %v", err)
			}
		})
	}
}

// A list finds an object by each element of an array that was there before its index, whatever was written since.
func TestListsFindWhatAnAddedIndexHolds(t *testing.T) {
	t.Parallel()
	const n = 3000
	var tags []string
	for i := range n {
		tags = append(tags, fmt.Sprintf(`"t%d"`, i))
	}
	p := newReopened(t)
	s := p.open(store.Options{})
	save(t, s, "a", `{"year":1,"tags":[`+strings.Join(tags, ",")+`]}`)
	save(t, s, "b", `{"year":1,"tags":["t7"]}`)
	p.close()
	s = p.open(store.Options{Indexes: indexesOf("tags[]", "year", "year,tags[]")})
	for range 2 {
		for filter, want := range map[string]string{
			`"t7" in tags`: "a b", fmt.Sprintf(`"t%d" in tags`, n-1): "a", `"t256" in tags && year == 1`: "a",
			`"t257" in tags && "t7" in tags`: "a", `"none" in tags`: "",
		} {
			if got := strings.Join(list(t, s, filter), " "); got != want {
				t.Errorf("%s: %q, want %q", filter, got, want)
			}
		}
		update(t, s, "a", `{"title":"y"}`)
	}
	// A client may make the array smaller, and then it is like any other.
	update(t, s, "a", `{"tags":["t1"]}`)
	if got := list(t, s, `"t7" in tags`); !slices.Equal(got, []string{"b"}) {
		t.Errorf("after the array became short: %v", got)
	}
}

func total(t *testing.T) *policy.Computed { return computed(t, map[string]string{"total": "1 + 1"}) }

func indexesOf(all ...string) (indexes []query.Index) {
	for _, fields := range all {
		indexes = append(indexes, query.NewIndex(strings.Split(fields, ",")))
	}
	return indexes
}

func update(t *testing.T, s *store.Store, uuid, text string) {
	t.Helper()
	if _, err := s.Update(t.Context(), parse(t, text), store.UpdateOptions{UUID: uuid}); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// list returns the uuids of the objects that meet a filter.
func list(t *testing.T, s *store.Store, filter string) (uuids []string) {
	t.Helper()
	page, err := s.List(t.Context(), store.ListOptions{Filter: filter, Limit: 100})
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	for _, o := range page.Objects {
		uuids = append(uuids, o.UUID)
	}
	return uuids
}

// reopened is a store in a folder that is opened with one configuration after the other.
type reopened struct {
	*testing.T
	folder  string
	backend *filestore.Backend
}

func newReopened(t *testing.T) *reopened {
	p := &reopened{T: t, folder: t.TempDir()}
	t.Cleanup(p.close)
	return p
}

func (p *reopened) open(o store.Options) *store.Store {
	p.Helper()
	var err error
	if p.backend, err = filestore.Open(p.folder, filestore.Options{}); err != nil {
		p.Fatal(err)
	}
	o.Name, o.Outbox = "Books", &outbox{}
	s, err := store.Open(p.Context(), p.backend, o)
	if err != nil {
		p.Fatal(err)
	}
	return s
}

func (p *reopened) close() {
	p.Helper()
	if err := p.backend.Close(); err != nil {
		p.Error(err)
	}
}
