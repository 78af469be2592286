package object_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

func parse(t testing.TB, s string) object.Object {
	t.Helper()
	o, err := object.Parse([]byte(s))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return o
}

func TestMergeReplacesTopLevelFields(t *testing.T) {
	old := parse(t, `{"a":{"x":1},"b":2,"c":3}`)
	patch := parse(t, `{"a":{"y":2},"b":null,"d":4}`)
	got := old.Merge(patch)
	if want := `{"a":{"y":2},"b":null,"c":3,"d":4}`; string(got.Encode()) != want {
		t.Errorf("got %s, want %s", got.Encode(), want)
	}
	if string(old.Encode()) != `{"a":{"x":1},"b":2,"c":3}` {
		t.Errorf("the receiver was modified: %s", old.Encode())
	}
	if got := object.Object(nil).Merge(patch); !got.Equal(patch) {
		t.Errorf("merged into nil: %s", got.Encode())
	}
}

// The examples of RFC 7396, appendix A, whose target and patch are both
// objects, and those with other targets as they occur inside an object.
func TestMergePatchExamplesOfTheRFC(t *testing.T) {
	for _, c := range []struct{ target, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"v":["a","b"]}`, `{"v":["c","d"]}`, `{"v":["c","d"]}`},
		{`{"v":{"a":"b"}}`, `{"v":["c"]}`, `{"v":["c"]}`},
		{`{"v":{"a":"foo"}}`, `{"v":null}`, `{}`},
		{`{"v":{"a":"foo"}}`, `{"v":"bar"}`, `{"v":"bar"}`},
		{`{"v":[1,2]}`, `{"v":{"a":"b","c":null}}`, `{"v":{"a":"b"}}`},
		{
			`{"title":"Goodbye!","author":{"givenName":"John","familyName":"Doe"},"tags":["example","sample"],"content":"This will be unchanged"}`,
			`{"title":"Hello!","phoneNumber":"+01-123-456-7890","author":{"familyName":null},"tags":["example"]}`,
			`{"author":{"givenName":"John"},"content":"This will be unchanged","phoneNumber":"+01-123-456-7890","tags":["example"],"title":"Hello!"}`,
		},
	} {
		got, err := object.MergePatch(parse(t, c.target), parse(t, c.patch))
		if err != nil || string(got.Encode()) != c.want {
			t.Errorf("%s patched by %s: %s, %v; want %s", c.target, c.patch, got.Encode(), err, c.want)
		}
	}
}

func TestMergePatchKeepsText(t *testing.T) {
	for name, c := range map[string]struct{ target, patch, want string }{
		"digits": {`{"n":1.50,"o":{"m":1E+2}}`, `{"o":{"k":2.0}}`,
			`{"n":1.50,"o":{"k":2.0,"m":1E+2}}`},
		"no HTML escapes": {`{"o":{"s":"<&>"}}`, `{"o":{"t":"<\u2028>"}}`,
			`{"o":{"s":"<&>","t":"<` + "\u2028" + `>"}}`},
		"order of what it leaves": {`{"o":{"z":1,"a":2}}`, `{"o":{"z":1,"q":null}}`, `{"o":{"z":1,"a":2}}`},
		"names by escapes":        {`{"o":{"a":1}}`, `{"o":{"\u0061":2}}`, `{"o":{"a":2}}`},
		"null inside an array":    {`{}`, `{"l":[null,{"a":null}]}`, `{"l":[null,{"a":null}]}`},
	} {
		got, err := object.MergePatch(parse(t, c.target), parse(t, c.patch))
		if err != nil || string(got.Encode()) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got.Encode(), err, c.want)
		}
	}
}

func TestMergePatchModifiesNeitherArgument(t *testing.T) {
	target, patch := parse(t, `{"a":{"b":1},"c":2}`), parse(t, `{"a":{"b":null},"c":null}`)
	if _, err := object.MergePatch(target, patch); err != nil {
		t.Fatal(err)
	}
	if string(target.Encode()) != `{"a":{"b":1},"c":2}` || string(patch.Encode()) != `{"a":{"b":null},"c":null}` {
		t.Errorf("now %s and %s", target.Encode(), patch.Encode())
	}
}

func TestMergePatchIsBoundedInDepth(t *testing.T) {
	deep := func(levels int) object.Object {
		return object.Object{"a": raw(strings.Repeat(`{"a":`, levels-1) + "1" + strings.Repeat("}", levels-1))}
	}
	got, err := object.MergePatch(deep(object.MaxDepth), deep(object.MaxDepth))
	if err != nil || !got.Equal(deep(object.MaxDepth)) {
		t.Errorf("at the limit: %v", err)
	}
	if _, err := object.MergePatch(object.Object{}, deep(object.MaxDepth+1)); !errors.Is(err, errs.Invalid) {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := object.MergePatch(object.Object{}, deep(20_000)); !errors.Is(err, errs.Invalid) {
		t.Errorf("far beyond the limit: %v", err)
	}
}

// reference is the RFC's own pseudocode, on decoded values.
func reference(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	result := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for name, value := range old {
			result[name] = value
		}
	}
	for name, value := range changes {
		if value == nil {
			delete(result, name)
		} else {
			result[name] = reference(result[name], value)
		}
	}
	return result
}

// FuzzMergePatch compares with the RFC's pseudocode; the result is an object
// that Parse accepts.
func FuzzMergePatch(f *testing.F) {
	f.Add([]byte(`{"a":{"b":1},"c":[1]}`), []byte(`{"a":{"b":null,"d":{"e":null}},"c":{"x":1}}`))
	f.Add([]byte(`{}`), []byte(`{"a":{"b":{"c":null}}}`))
	f.Add([]byte(book), []byte(`{"publisher":{"city":null},"tags":null}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		target, err1 := object.Parse(a)
		patch, err2 := object.Parse(b)
		if err1 != nil || err2 != nil {
			return
		}
		got, err := object.MergePatch(target, patch)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := object.Parse(got.Encode()); err != nil {
			t.Fatalf("result %s: %v", got.Encode(), err)
		}
		if !reflect.DeepEqual(decode(t, got.Encode()), reference(decode(t, a), decode(t, b))) {
			t.Fatalf("%s patched by %s gives %s", a, b, got.Encode())
		}
	})
}

func decode(t *testing.T, data []byte) (v any) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}
