package object_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

func TestEachVisitsFieldsInOrder(t *testing.T) {
	var got []string
	err := object.Each([]byte(`{"b":1,"a\"":"}","o":{"x":"]"},"l":[1,[2]],"n":null}`),
		func(name string, value []byte) bool {
			got = append(got, name+"="+string(value))
			return true
		})
	want := []string{`b=1`, `a"="}"`, `o={"x":"]"}`, `l=[1,[2]]`, `n=null`}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestEachStopsOnFalse(t *testing.T) {
	n := 0
	err := object.Each([]byte(`{"a":1,"b":2}`), func(string, []byte) bool { n++; return false })
	if err != nil || n != 1 {
		t.Errorf("%d calls, %v", n, err)
	}
}

func TestEachRejectsWhatIsNotAnObject(t *testing.T) {
	for _, in := range []string{
		``, `1`, `[1]`, `{`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{1:2}`, `{,}`, `{a:1}`, `{"a" 1}`, `{"\x":1}`,
	} {
		err := object.Each([]byte(in), func(string, []byte) bool { return true })
		if err == nil || errs.KindOf(err) != errs.Internal {
			t.Errorf("%s: %v, want an internal error", in, err)
		}
	}
}

func TestField(t *testing.T) {
	data := []byte(`{"uuid":"u","a\n":1,"\u0062":2,"o":{"c":3},"z":null}`)
	for name, want := range map[string]string{"uuid": `"u"`, "a\n": "1", "b": "2", "o": `{"c":3}`, "z": "null", "c": "",
		"": "", "uui": ""} {
		if got := object.Field(data, name); string(got) != want {
			t.Errorf("Field(%q) = %s, want %s", name, got, want)
		}
	}
	if got := object.Field(data, "c"); got != nil {
		t.Errorf("an absent field gives %q, want nil", got)
	}
	if got := object.Field([]byte(`no object`), "a"); got != nil {
		t.Errorf("no object gives %q, want nil", got)
	}
}

func TestValues(t *testing.T) {
	data := []byte(`{"uuid":"u","a\n":1,"\u0062":2,"o":{"c":3},"z":null}`)
	for _, c := range []struct{ names, want []string }{
		{[]string{"b", "c", "o", "b"}, []string{"2", "", `{"c":3}`, "2"}},
		{[]string{"z", "uuid", "a\n"}, []string{"null", `"u"`, "1"}},
		{nil, nil},
	} {
		var got []string
		for _, value := range object.Values(data, c.names) {
			got = append(got, string(value))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q are %q, want %q", c.names, got, c.want)
		}
	}
	if got := object.Values([]byte(`{"a":1}`), []string{"b"}); len(got) != 1 || got[0] != nil {
		t.Errorf("an absent field gives %q, want nil", got)
	}
}

func TestElements(t *testing.T) {
	for in, want := range map[string][]string{
		`[]`:                          nil,
		"\n[ 1 , \"a,b\" , [2,3] ]\t": {`1`, `"a,b"`, `[2,3]`},
		`[{"a":"]"},null,"\"]\\"]`:    {`{"a":"]"}`, `null`, `"\"]\\"`},
		`{"a":1}`:                     nil,
		`"x"`:                         nil,
		``:                            nil,
		`[1:2]`:                       {`1`},
	} {
		var got []string
		object.Elements([]byte(in), func(value []byte) bool { got = append(got, string(value)); return true })
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
	n := 0
	object.Elements([]byte(`[1,2,3]`), func([]byte) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d calls after the function returned false at the second", n)
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{`""`: "", `"abc"`: "abc", `"\u00e9\n\"\\"`: "é\n\"\\",
		`"\ud83d\ude00"`: "😀"} {
		if got, ok := object.Text([]byte(in)); !ok || got != want {
			t.Errorf("Text(%s) = %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{``, `"`, `1`, `null`, `["a"]`, `"abc`, `"\`, `"\x"`, `"\"`} {
		if got, ok := object.Text([]byte(in)); ok {
			t.Errorf("Text(%s) = %q, want none", in, got)
		}
	}
}

// FuzzScan: the trusting readers end and stay inside their input, whatever it is.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{book, `[1,"a",[2],{"b":3}]`, `{"a":1,`, `[`, `["`, `{"\`, `{"a":{"b":[}`, `[:]`,
		`{"a":1 2}`, `[}`, `{]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		calls, names := 0, []string(nil)
		inside := func(value []byte) {
			if calls++; calls > len(data) {
				t.Fatal("more values than bytes")
			}
			if len(value) == 0 || !bytes.Contains(data, value) {
				t.Fatalf("%q is not a part of the input", value)
			}
		}
		err := object.Each(data, func(name string, value []byte) bool {
			inside(value)
			names = append(names, name)
			return true
		})
		for _, name := range names {
			if object.Field(data, name) == nil {
				t.Fatalf("Each gives %q, Field does not", name)
			}
		}
		if _, decodeErr := object.Decode(data); (err == nil) != (decodeErr == nil) {
			t.Fatalf("Each says %v, Decode says %v", err, decodeErr)
		}
		calls = 0
		object.Elements(data, func(value []byte) bool { inside(value); return true })
		object.Text(data)
	})
}

func TestScanningIsLinear(t *testing.T) {
	// A quadratic scan of these would take minutes.
	for _, in := range []string{
		`{"a":"` + strings.Repeat(`\"`, 1<<20),
		`{"a":` + strings.Repeat(`{"b":`, 1<<20),
		`{"a":` + strings.Repeat(`"",`, 1<<20),
	} {
		_ = object.Each([]byte(in), func(string, []byte) bool { return true })
	}
}
