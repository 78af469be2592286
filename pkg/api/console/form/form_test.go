package form_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/console/form"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// sent returns what a browser sends for a form in which nothing is edited.
func sent(f *form.Form) url.Values {
	values := url.Values{}
	f.Each(func(field *form.Field) {
		if field.ReadOnly || field.Kind == form.Reference {
			return
		}
		if field.Named {
			values.Set(field.KeyName, field.Key)
		}
		switch field.Kind {
		case form.Group, form.List:
			if field.Kind == form.List || field.Map {
				values.Set("rows:"+field.Name, field.IDs)
			}
		case form.Check:
			values.Set(field.Name, "false")
			if field.Checked {
				values.Add(field.Name, "true")
			}
		case form.Choice:
			values.Set(field.Name, "")
			for _, o := range field.Options {
				if o.Selected {
					values.Set(field.Name, o.Value)
				}
			}
		default: // browsers end lines in this way
			text := strings.ReplaceAll(strings.ReplaceAll(field.Text, "\r\n", "\n"), "\r", "\n")
			values.Set(field.Name, strings.ReplaceAll(text, "\n", "\r\n"))
		}
	})
	return values
}

func schemaOf(t testing.TB, text string, o form.Options) *form.Schema {
	t.Helper()
	s, err := form.New([]byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func show(t testing.TB, s *form.Schema, base string) *form.Form {
	t.Helper()
	f, err := s.Show([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// edit shows a form, changes inputs, and returns what is made of it.
func edit(t testing.TB, s *form.Schema, base string, pairs ...string) (*form.Form, string, []errs.Field) {
	t.Helper()
	values := sent(show(t, s, base))
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
		if list, ok := strings.CutPrefix(pairs[i], "rows:"); ok { // rows that are gone send nothing
			for name := range values {
				id, within := strings.CutPrefix(name, list+"/")
				if within && pairs[i] != "rows:/amounts" && !slices.Contains(strings.Fields(pairs[i+1]), id[:1]) {
					values.Del(name)
				}
			}
		}
	}
	f, text, problems, err := s.Submit([]byte(base), values)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := object.Parse(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f, string(text), problems
}

// field returns the field of an input.
func field(t testing.TB, f *form.Form, name string) (found *form.Field) {
	t.Helper()
	f.Each(func(one *form.Field) {
		if one.Name == name && found == nil {
			found = one
		}
	})
	if found == nil {
		t.Fatalf("the form has no field %s", name)
	}
	return found
}

const recipe = `{"type":"object","required":["title","vegan"],"properties":{
	"note":{"type":"string","maxLength":5000,"description":"For cooks"},
	"title":{"type":"string","title":"Name"},
	"minutes":{"type":"integer","minimum":1,"maximum":600},
	"price":{"type":"number"},
	"vegan":{"type":"boolean"},
	"spicy":{"type":"boolean"},
	"course":{"enum":["starter","main",3,null]},
	"level":{"oneOf":[{"const":1,"title":"Easy"},{"const":2,"title":"Hard"}]},
	"day":{"type":"string","format":"date"},
	"at":{"type":"string","format":"date-time"},
	"clock":{"type":"string","format":"time"},
	"mail":{"type":"string","format":"email"},
	"site":{"type":["string","null"],"format":"uri"},
	"tags":{"type":"array","items":{"type":"string"}},
	"steps":{"type":"array","items":{"type":"object","required":["text"],"properties":{
		"text":{"type":"string"},"minutes":{"type":"integer"},"tools":{"type":"array","items":{"type":"string"}}}}},
	"source":{"type":"object","properties":{"book":{"type":"string"},"page":{"$ref":"#/$defs/page"}}},
	"amounts":{"type":"object","additionalProperties":{"type":"number"}},
	"any":{}, "either":{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"type":"object"}]},
	"one":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
	"scalar":{"type":["string","number","boolean"]},
	"tree":{"$ref":"#/$defs/tree"}},
	"$defs":{"page":{"type":"integer","minimum":1},
		"tree":{"type":"object","properties":{"name":{"type":"string"},"child":{"$ref":"#/$defs/tree"}}}}}`

func TestFieldsAreOfTheKindsOfTheSchema(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	f := show(t, s, `{"title":"Soup","vegan":true,"at":"2024-05-01T10:00:00+02:00","one":"x","more":{"a":1}}`)
	for name, kind := range map[string]form.Kind{
		"/title": form.Text, "/note": form.Long, "/minutes": form.Number, "/price": form.Number, "/vegan": form.Check,
		"/spicy": form.Choice, "/course": form.Choice, "/level": form.Choice, "/day": form.Date, "/at": form.DateTime,
		"/clock": form.Time, "/mail": form.Email, "/site": form.URL, "/tags": form.List, "/steps": form.List,
		"/source": form.Group, "/source/page": form.Number, "/amounts": form.Group, "/any": form.JSON,
		"/either": form.JSON, "/one": form.Text, "/scalar": form.Mixed, "/tree": form.Group, "/tree/child": form.JSON,
	} {
		if is := field(t, f, name); is.Kind != kind {
			t.Errorf("%s is %s, want %s", name, is.Kind, kind)
		}
	}
	if f.Fields[0].Name != "/title" || f.Fields[1].Name != "/vegan" || f.Fields[2].Name != "/note" {
		t.Error("the required ones are not first")
	}
	if is := field(t, f, "/title"); is.Label != "Name" || !is.Required || is.Text != "Soup" {
		t.Errorf("%+v", is)
	}
	if is := field(t, f, "/minutes"); is.Bounds != "at least 1, at most 600" {
		t.Error(is.Bounds)
	}
	if is := field(t, f, "/at"); is.Text != "2024-05-01T08:00" {
		t.Error(is.Text)
	}
	if is := field(t, f, "/level"); is.Options[1].Label != "Hard" || is.Options[1].Value != "2" {
		t.Errorf("%+v", is.Options)
	}
	if f.Other != `{"more":{"a":1}}` {
		t.Errorf("others are %s", f.Other)
	}
}

// TestNothingIsChangedWhereNothingIsEdited: whatever the value, and whether or not it fits the schema.
func TestNothingIsChangedWhereNothingIsEdited(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	for _, base := range []string{
		`{}`, `{"title":""}`, `{"title":null}`,
		`{"title":5,"vegan":"yes","tags":"x","steps":{},"source":[],"amounts":7}`,
		`{"z":1,"title":"a","a":{"b":[1.0,1e3,12345678901234567890.10]},"vegan":false}`,
		`{"minutes":1.0,"price":1e400,"scalar":"5","level":1.0,"course":null}`, `{"price":"abc","minutes":"12"}`,
		`{"tags":[],"steps":[],"source":{},"amounts":{}}`, `{"tags":["","a",5,null,"b\nc"],"one":[],"any":null}`,
		`{"steps":[{},{"text":"x","more":1,"tools":["a"]},null,3]}`, `{"amounts":{"":1,"a/b":2,"~":"x"}}`,
		`{"note":"a\r\nb\rc\n","title":"line\nline","site":" x ","mail":"a@ex\u00e4mple.de"}`,
		`{"at":"2024-05-01T10:00:00.123456Z","day":"no day","clock":"25:00:00Z","site":null}`,
		`{"at":"2016-12-31T23:59:60Z","clock":"10:00:00.5+02:00","day":"0000-01-01"}`,
		`{"tree":{"name":"a","child":{"name":"b","child":{"child":null}}},"either":{"a":{"b":[]}}}`,
		`{"title":"\u00e9\/","note":"\u202e\u0001"}`, `{"source":{"page":"x","book":null,"z":[1,2]}}`,
	} {
		_, text, problems := edit(t, s, base)
		if want := string(object.Canonical([]byte(base))); text != want || len(problems) > 0 {
			t.Errorf("%s became %s, %v", base, text, problems)
		}
	}
}

func TestEditsChangeTheirValuesAlone(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	for _, c := range []struct {
		base  string
		edits []string
		want  string
	}{
		{`{}`, []string{"/title", "Soup"}, `{"title":"Soup"}`},
		{`{"z":1.0,"title":"a","b":2}`, []string{"/title", `q"<`}, `{"z":1.0,"title":"q\"<","b":2}`},
		{`{"title":"a","note":"b"}`, []string{"/note", ""}, `{"title":"a"}`},
		{`{"note":""}`, []string{"/note", ""}, `{"note":""}`},
		{`{}`, []string{"/minutes", " 12 ", "/price", "0.10"}, `{"minutes":12,"price":0.10}`},
		{`{}`, []string{"/price", "12345678901234567890.10"}, `{"price":12345678901234567890.10}`},
		{`{"vegan":true}`, []string{"/vegan", "false"}, `{"vegan":false}`},
		{`{}`, []string{"/spicy", "false"}, `{"spicy":false}`},
		{`{"spicy":true}`, []string{"/spicy", ""}, `{}`},
		{`{}`, []string{"/course", "3", "/level", "2"}, `{"course":3,"level":2}`},
		{`{}`, []string{"/course", "null"}, `{"course":null}`},
		{`{}`, []string{"/day", "2024-02-03", "/at", "2024-02-03T04:05", "/clock", "04:05:06"},
			`{"day":"2024-02-03","at":"2024-02-03T04:05:00Z","clock":"04:05:06Z"}`},
		{`{"site":"x"}`, []string{"/site", ""}, `{}`},
		{`{"site":null}`, []string{"/site", "https://e.org"}, `{"site":"https://e.org"}`},
		{`{"tags":["a","b","c"]}`, []string{"/tags/1", ""}, `{"tags":["a","c"]}`},
		{`{"tags":["a","b","c"]}`, []string{"rows:/tags", "2 0 5", "/tags/5", "d"}, `{"tags":["c","a","d"]}`},
		{`{"steps":[{"text":"x","z":1}]}`, []string{"/steps/0/text", "y"}, `{"steps":[{"text":"y","z":1}]}`},
		{`{}`, []string{"/source/page", "7"}, `{"source":{"page":7}}`},
		{`{"amounts":{"a":1,"b":2}}`, []string{"name:/amounts/~r0", "x/y", "/amounts/~r1", "3"},
			`{"amounts":{"x/y":1,"b":3}}`},
		{`{"amounts":{"a":1}}`, []string{"rows:/amounts", "0 1", "name:/amounts/~r1", "b", "/amounts/~r1", "2"},
			`{"amounts":{"a":1,"b":2}}`},
		{`{"any":1}`, []string{"/any", `{"a": [1.0]}`}, `{"any":{"a":[1.0]}}`},
		{`{}`, []string{"/scalar", "12"}, `{"scalar":12}`},
		{`{"scalar":"a"}`, []string{"/scalar", "12"}, `{"scalar":"12"}`},
		{`{"scalar":true}`, []string{"/scalar", "a"}, `{"scalar":"a"}`},
		{`{"one":"a"}`, []string{"/one", "b"}, `{"one":"b"}`},
		{`{}`, []string{"add", "/tags"}, `{}`},
		{`{}`, []string{"add", "/steps"}, `{"steps":[{}]}`},
		{`{"steps":[{"text":"a"},{"text":"b"}]}`, []string{"remove", "/steps/0"}, `{"steps":[{"text":"b"}]}`},
		{`{"amounts":{"a":1,"b":2}}`, []string{"remove", "/amounts/~r1"}, `{"amounts":{"a":1}}`},
		{`{"steps":[{"tools":["a"]}]}`, []string{"add", "/steps/0/tools"}, `{"steps":[{"tools":["a"]}]}`},
	} {
		if _, text, problems := edit(t, s, c.base, c.edits...); text != c.want || len(problems) > 0 {
			t.Errorf("%s with %q became %s, not %s: %v", c.base, c.edits, text, c.want, problems)
		}
	}
}

// TestWhatIsMalformedIsNotLost: it is shown again, is in the object as a text, and its field is named.
func TestWhatIsMalformedIsNotLost(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	f, text, problems := edit(t, s, `{"tags":["a","b"],"amounts":{"a":1,"b":2}}`, "/minutes", "1.5", "/price", "abc",
		"/any", "{", "name:/amounts/~r1", "a", "/source/page", "x", "rows:/steps", "0", "/steps/0/minutes", "y")
	var at []string
	for _, p := range problems {
		at = append(at, p.Pointer+" "+p.Message)
	}
	all := strings.Join(at, "; ")
	for _, want := range []string{"/minutes expected a whole number", "/price expected a number", "/any expected JSON",
		"/amounts/a another row", "/source/page expected a whole number", "/steps/0/minutes expected a whole"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in %s", want, all)
		}
	}
	for _, want := range []string{`"minutes":"1.5"`, `"price":"abc"`, `"any":"{"`, `"a (2)":2`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if rest := f.Place(problems); len(rest) > 0 {
		t.Errorf("not placed: %v", rest)
	}
	if is := field(t, f, "/price"); is.Text != "abc" || len(is.Problems) != 1 {
		t.Errorf("%+v", is)
	}
	again := show(t, s, text)
	if is := field(t, again, "/price"); is.Kind != form.Number || is.Text != "abc" {
		t.Errorf("%+v", is)
	}
}

// TestViolationsAreAtTheirFields, also where rows have been removed before.
func TestViolationsAreAtTheirFields(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{})
	f, _, _ := edit(t, s, `{"tags":["a","b","c"],"amounts":{"a/b":1},"steps":[{"text":"x"}]}`, "rows:/tags", "1 2")
	rest := f.Place([]errs.Field{{Pointer: "/tags/1", Message: "too short"}, {Pointer: "/amounts/a~1b", Message: "low"},
		{Pointer: "/steps/0/text/deep", Message: "bad"}, {Pointer: "/unknown", Message: "no"}, {Message: "all"}})
	if len(rest) != 2 {
		t.Errorf("the rest is %v", rest)
	}
	for name, want := range map[string]string{"/tags/2": "too short", "/amounts/~r0": "low", "/steps/0/text": "bad"} {
		if is := field(t, f, name); !slices.Contains(is.Problems, want) {
			t.Errorf("%s has %v", name, is.Problems)
		}
	}
}

func TestHostileInputsAreRefused(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, recipe, form.Options{ReadOnly: func(p string) bool { return p == "/note" }})
	many := strings.Repeat("0 ", 5000)
	for _, pairs := range [][]string{
		{"/../etc", "x"}, {"/nothing", "x"}, {"/title/0", "x"}, {"/~1title", "x"}, {"/source/page/../book", "x"},
		{"rows:/tags", many}, {"rows:/tags", "0 0"}, {"rows:/tags", "-1"}, {"rows:/tags", "99999999999999999999"},
		{"rows:/tags", "x"}, {"rows:/nothing", "0"}, {"name:/nothing", "x"}, {"add", "/title"}, {"add", "/nothing"},
		{"remove", "/tags/7"}, {"remove", "/title"}, {"remove", "/tags/~r0/x"}, {"add", "/amounts/a"},
	} {
		values := sent(show(t, s, `{"note":"kept","tags":["a"]}`))
		for i := 0; i < len(pairs); i += 2 {
			values.Set(pairs[i], pairs[i+1])
		}
		_, _, _, err := s.Submit([]byte(`{"note":"kept","tags":["a"]}`), values)
		kind := errs.KindOf(err)
		if err == nil || kind != errs.Invalid && kind != errs.TooLarge || len(err.Error()) > 400 {
			t.Errorf("%.60q: %v", pairs, err)
		}
	}
	rows := make([]string, 201)
	for i := range rows {
		rows[i] = fmt.Sprint(i)
	}
	_, _, _, err := s.Submit([]byte(`{}`), url.Values{"rows:/steps": {strings.Join(rows, " ")}})
	if err == nil {
		t.Error("201 new rows are taken")
	}
	_, text, problems := edit(t, s, `{"note":"kept"}`, "/note", "changed", "/course", "9", "/title", "a\x00b")
	if text != `{"note":"kept"}` || len(problems) != 2 {
		t.Errorf("%s, %v", text, problems)
	}
	if _, err := s.Show([]byte(`[`)); !errors.Is(err, errs.Invalid) {
		t.Error(err)
	}
	for _, schema := range []string{`true`, `[`, `5`} {
		if _, err := form.New([]byte(schema), form.Options{}); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// An expression is a text of any length with lines. An empty one is left out.
func TestAnExpressionHasAFieldOfItsOwn(t *testing.T) {
	t.Parallel()
	s := schemaOf(t, `{"type":"object","properties":{"rule":{"type":"string","contentMediaType":"text/x-cel"}}}`,
		form.Options{})
	const base = `{"rule":"a\n&& b"}`
	f, text, problems := edit(t, s, base)
	if is := field(t, f, "/rule"); is.Kind != form.Expression || is.Text != "a\n&& b" || text != base || problems != nil {
		t.Errorf("%+v, %s, %v", is, text, problems)
	}
	if _, text, _ = edit(t, s, base, "/rule", "a ||\r\nb"); text != `{"rule":"a ||\nb"}` {
		t.Error(text)
	}
	if _, text, _ = edit(t, s, base, "/rule", " "); text != `{}` {
		t.Error(text)
	}
}
