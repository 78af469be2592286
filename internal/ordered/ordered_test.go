package ordered_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"belfry/internal/ordered"
)

// parse reads a JSON text whose root is an object.
func parse(text string) (*ordered.Object, error) {
	v, err := ordered.Value([]byte(text))
	if err != nil {
		return nil, err
	}
	o, ok := v.(*ordered.Object)
	if !ok {
		return nil, errors.New("an object is expected")
	}
	return o, nil
}

func TestParseKeepsOrderAndNumbers(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"b":1,"a":{"z":[],"y":[{"d":null,"c":1.50}]},"0":"<&>"}`, `{"n":12345678901234567890.0e2}`,
	} {
		o, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := o.MarshalJSON()
		if err != nil || string(got) != text {
			t.Errorf("%s became %s, %v", text, got, err)
		}
	}
}

func TestParseRefusesAnythingButOneObject(t *testing.T) {
	for _, text := range []string{``, `[]`, `1`, `{} {}`, `{"a":}`, `{"a":[1,}`, `{`, `{"a"`} {
		if o, err := parse(text); err == nil {
			t.Errorf("%q was taken for %v", text, o)
		}
	}
}

func TestMembersAreFoundSetAndDeleted(t *testing.T) {
	o := ordered.Of("a", 1, "left out", nil, "b", ordered.Null(), "c", []string{"x"}, "d", ordered.Of("e", true))
	o.Set("a", 2)
	o.Set("f", json.RawMessage(`[1]`))
	copied := o.Clone()
	copied.Delete("a", "c")
	for _, c := range []struct {
		o    *ordered.Object
		want string
	}{
		{o, `{"a":2,"b":null,"c":["x"],"d":{"e":true},"f":[1]}`},
		{copied, `{"b":null,"d":{"e":true},"f":[1]}`},
		{nil, `null`},
	} {
		got, err := c.o.MarshalJSON()
		if err != nil || string(got) != c.want {
			t.Errorf("got %s, %v; want %s", got, err, c.want)
		}
	}
	if o.Object("d").Get("e") != true || o.Object("a") != nil || o.Get("zz") != nil || o.Has("zz") || o.Len() != 5 {
		t.Error("members are not found")
	}
	var none *ordered.Object
	if none.Len() != 0 || none.Get("a") != nil || none.Members() != nil {
		t.Error("a nil object has members")
	}
}

func TestEncodeIndents(t *testing.T) {
	text, err := ordered.Of("a", ordered.Of("b", "<")).Encode()
	if want := "{\n  \"a\": {\n    \"b\": \"<\"\n  }\n}\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := ordered.Of("deep", ordered.Of("f", func() {})).Encode(); err == nil ||
		!strings.Contains(err.Error(), "deep: f") {
		t.Errorf("a value without JSON: %v", err)
	}
}
