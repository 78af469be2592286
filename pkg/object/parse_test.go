package object_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

func nested(open, closing string, levels int) string {
	return `{"a":` + strings.Repeat(open, levels-1) + strings.Repeat(closing, levels-1) + `}`
}

func TestParseKeepsValuesAsCompactText(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want object.Object
	}{
		"empty":        {`{}`, object.Object{}},
		"space around": {" \t\r\n{ } \n", object.Object{}},
		"digits stay": {
			`{"n": 1.50, "m": -0, "e": 1E+05, "big": 123456789012345678901234567890}`, object.Object{"n": raw("1.50"),
				"m": raw("-0"), "e": raw("1E+05"), "big": raw("123456789012345678901234567890")}},
		"huge exponent":     {`{"n": 1e999999999}`, object.Object{"n": raw("1e999999999")}},
		"escapes decoded":   {`{"s": "\u00e9\/<>&"}`, object.Object{"s": raw(`"é/<>&"`)}},
		"escaped backslash": {`{"s": "\\u0000"}`, object.Object{"s": raw(`"\\u0000"`)}},
		"names unescaped":   {`{"\u0061\n": 1}`, object.Object{"a\n": raw("1")}},
		"nested compacted":  {`{"o": { "b" : [ 1 , 2 ] , "a" : { } } }`, object.Object{"o": raw(`{"b":[1,2],"a":{}}`)}},
		"space in strings":  {`{"s": " a  b "}`, object.Object{"s": raw(`" a  b "`)}},
		"literals": {`{"t":true,"f":false,"n":null}`,
			object.Object{"t": raw("true"), "f": raw("false"), "n": raw("null")}},
		"empty name":       {`{"":1}`, object.Object{"": raw("1")}},
		"same name deeper": {`{"a":{"a":{"a":1}}}`, object.Object{"a": raw(`{"a":{"a":1}}`)}},
		"astral":           {`{"s":"😀\ud83d\ude00"}`, object.Object{"s": raw(`"😀😀"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := object.Parse([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if !got.Equal(c.want) {
				t.Errorf("Parse(%s) = %s, want %s", c.in, got.Encode(), c.want.Encode())
			}
		})
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func TestParseRejects(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want string // in the message
	}{
		"empty":                 {"", "empty"},
		"only space":            {" \n\t", "empty"},
		"two byte order marks":  {"\ufeff\ufeff{}", "at byte 0"},
		"a mark of UTF-16":      {"\xff\xfe{\x00}\x00", "malformed"},
		"a mark within":         {"{\ufeff}", "at byte 1"},
		"a mark alone":          {"\ufeff", "empty"},
		"array":                 {`[{"a":1}]`, "an array"},
		"string":                {`"x"`, "a string"},
		"number":                {`12`, "a number"},
		"boolean":               {`true`, "a boolean"},
		"null":                  {`null`, "null"},
		"cut off":               {`{"a":1`, "malformed"},
		"cut off in a string":   {`{"a":"x`, "malformed"},
		"cut off after escape":  {`{"a":"\`, "malformed"},
		"only opened":           {`{`, "malformed"},
		"trailing comma":        {`{"a":1,}`, "malformed"},
		"missing comma":         {`{"a":1 "b":2}`, "malformed"},
		"missing colon":         {`{"a" 1}`, "malformed"},
		"missing value":         {`{"a":}`, "malformed"},
		"bare name":             {`{a:1}`, "at byte 1"},
		"single quotes":         {`{'a':1}`, "malformed"},
		"comment":               {`{/**/}`, "malformed"},
		"second object":         {`{"a":1} {"b":2}`, "something follows the object at byte 8"},
		"trailing text":         {`{}x`, "at byte 2"},
		"closed twice":          {`{}}`, "at byte 2"},
		"leading zero":          {`{"n":01}`, "malformed"},
		"plus sign":             {`{"n":+1}`, "malformed"},
		"no fraction":           {`{"n":1.}`, "malformed"},
		"NaN":                   {`{"n":NaN}`, "malformed"},
		"unknown escape":        {`{"s":"\x41"}`, "malformed"},
		"control character":     {"{\"s\":\"a\nb\"}", "malformed"},
		"duplicate":             {`{"a":1,"a":2}`, "duplicate"},
		"duplicate by escape":   {`{"a":1,"\u0061":2}`, "duplicate"},
		"duplicate nested":      {`{"o":{"a":1,"a":1}}`, "duplicate"},
		"duplicate in an array": {`{"l":[[{"a":1,"a":1}]]}`, "duplicate"},
		"NUL":                   {"{\"s\":\"a\x00b\"}", "NUL"},
		"NUL after a backslash": {"{\"s\":\"a\\\x00\"}", "malformed"},
		"NUL outside":           {"{}\x00", "NUL"},
		"escaped NUL":           {`{"s":"a\u0000b"}`, "NUL"},
		"escaped NUL in a name": {`{"a\u0000":1}`, "NUL"},
		"escaped NUL deep":      {`{"a":[{"b":"\u0000"}]}`, "NUL"},
		"invalid UTF-8":         {"{\"s\":\"\xff\"}", "malformed"},
		"overlong UTF-8":        {"{\"s\":\"\xc0\x80\"}", "malformed"},
		"UTF-8 surrogate":       {"{\"s\":\"\xed\xa0\x80\"}", "malformed"},
		"cut UTF-8":             {"{\"s\":\"\xe2\x82\"}", "malformed"},
		"invalid UTF-8 in name": {"{\"\xff\":1}", "malformed"},
		"lone surrogate":        {`{"s":"\ud800"}`, "malformed"},
		"65 arrays deep":        {nested("[", "]", object.MaxDepth+1), "more than 64 levels"},
		"65 objects deep": {strings.Repeat(`{"a":`, object.MaxDepth+1) + "1" +
			strings.Repeat("}", object.MaxDepth+1), "more than 64 levels"},
		"10,000 levels":          {nested("[", "]", 10_000), "more than 64 levels"},
		"10,000 levels unclosed": {strings.Repeat("[", 10_000), "more than 64 levels"},
		"depth hidden by ]":      {strings.Repeat("]", 10_000) + strings.Repeat("[", 10_000), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := object.Parse([]byte(c.in))
			if err == nil {
				t.Fatalf("accepted as %s", o.Encode())
			}
			if !errors.Is(err, errs.Invalid) {
				t.Errorf("kind %v, want invalid", errs.KindOf(err))
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("message %q does not say %q", err, c.want)
			}
		})
	}
}

func TestParseLimitsDepth(t *testing.T) {
	for _, in := range []string{
		nested("[", "]", object.MaxDepth),
		strings.Repeat(`{"a":`, object.MaxDepth) + "1" + strings.Repeat("}", object.MaxDepth),
		`{"s":"` + strings.Repeat("[{", 1000) + `"}`,
	} {
		if _, err := object.Parse([]byte(in)); err != nil {
			t.Errorf("%.20s...: %v", in, err)
		}
	}
}

func TestParsePointsAtTheDuplicate(t *testing.T) {
	_, err := object.Parse([]byte(`{"list":[0,{"a":1,"a":2}]}`))
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Pointer != "/list/1/a" {
		t.Errorf("got %#v, want a field at /list/1/a", err)
	}
}

func TestParseAcceptsAHugeObject(t *testing.T) {
	in := []byte(`{"s":"` + strings.Repeat("é", 5<<20) + `","l":[` + strings.Repeat("0,", 1<<20) + `0]}`)
	o, err := object.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := o.Text("s"); len(s) != 10<<20 {
		t.Errorf("s has %d bytes", len(s))
	}
}

func TestParseDoesNotReferToItsInput(t *testing.T) {
	in := []byte(`{"a":"before"}`)
	o, err := object.Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	copy(in, `{"a":"after!"}`)
	if s, _ := o.Text("a"); s != "before" {
		t.Errorf("a = %q after the input was overwritten", s)
	}
}

func TestValuesCannotGrowIntoEachOther(t *testing.T) {
	o, err := object.Parse([]byte(`{"a":1,"b":2}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = append(o["a"], "overwritten"...)
	if string(o["b"]) != "2" {
		t.Errorf("b = %s after a was appended to", o["b"])
	}
}

// FuzzParse: what is accepted is written in a form that is accepted as the
// same object, by the strict and by the trusting reader.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		book, `{}`, ` { "a" : [ 1 , { "b" : "\u00e9" } ] } `, `{"a":1,"a":2}`, `{"\u0061":1,"uuid":"x"}`,
		nested("[", "]", 64), nested("[", "]", 65), `{"n":1e999999999}`, "{\"s\":\"\xff\"}", `{"s":"\ud83d\ude00\\"}`,
		`[]`, `{}{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := object.Parse(data)
		if err != nil {
			if !errors.Is(err, errs.Invalid) {
				t.Fatalf("kind %v: %v", errs.KindOf(err), err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("accepted what encoding/json refuses")
		}
		encoded := o.Encode()
		again, err := object.Parse(encoded)
		if err != nil {
			t.Fatalf("its encoding %s is refused: %v", encoded, err)
		}
		decoded, err := object.Decode(encoded)
		if err != nil {
			t.Fatalf("its encoding %s is not decoded: %v", encoded, err)
		}
		if !maps.EqualFunc(o, again, equalText) || !o.Equal(decoded) {
			t.Fatalf("%s became %s and %s", encoded, again.Encode(), decoded.Encode())
		}
	})
}

func equalText(a, b json.RawMessage) bool { return string(a) == string(b) }

// Programs on Windows write a byte order mark before a text.
func TestAByteOrderMarkIsSkipped(t *testing.T) {
	o, err := object.Parse([]byte("\ufeff{\"a\":1}"))
	if err != nil || string(o.Encode()) != `{"a":1}` {
		t.Errorf("%s, %v", o, err)
	}
}
