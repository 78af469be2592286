package object_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"belfry/pkg/object"
	"belfry/test/kit/hardtext"
)

// TestStringsAreStoredInOneForm: whatever escapes a client sends, equal strings have equal texts.
func TestStringsAreStoredInOneForm(t *testing.T) {
	for sent, want := range map[string]string{
		`"plain"`:                          `"plain"`,
		`""`:                               `""`,
		`"\u4e2d\u6587"`:                   `"中文"`,
		`"\u4E2D"`:                         `"中"`,
		`"\ud83d\ude00"`:                   `"😀"`,
		`"\uD83D\uDE00\ud83d\uDE00"`:       `"😀😀"`,
		`"\/\u002f/"`:                      `"///"`,
		`"\u003c\u003E\u0026\u0027"`:       `"<>&'"`,
		`"\u2028\u2029"`:                   "\"\u2028\u2029\"",
		`"\u0022\u005c"`:                   `"\"\\"`,
		`"\"\\"`:                           `"\"\\"`,
		`"\u0008\u0009\u000a\u000C\u000d"`: `"\b\t\n\f\r"`,
		`"\b\t\n\f\r"`:                     `"\b\t\n\f\r"`,
		`"\u0001\u001F\u001f\u000b"`:       `"\u0001\u001f\u001f\u000b"`,
		`"\u007f\u0080\u00a0\ufeff"`:       "\"\u007f\u0080\u00a0\ufeff\"",
		`"\\u0041\\\u0041"`:                `"\\u0041\\A"`,
		`"\\\\\/"`:                         `"\\\\/"`,
		`"\u0041"`:                         `"A"`,
		`"\uffff\ufffd\udbff\udfff"`:       "\"\uffff\ufffd\U0010ffff\"",
		`["\/",{"\u0061\/":"\u00e9"}]`:     `["/",{"a/":"é"}]`,
		`1.50`:                             `1.50`,
		`[1E+05,-0,true,null]`:             `[1E+05,-0,true,null]`,
	} {
		o, err := object.Parse([]byte(`{"v":` + sent + `}`))
		if err != nil {
			t.Errorf("%s: %v", sent, err)
			continue
		}
		if string(o["v"]) != want {
			t.Errorf("%s is stored as %s, want %s", sent, o["v"], want)
		}
		old, err := object.Decode([]byte(`{"v":` + sent + `}`))
		if err != nil || string(old["v"]) != want {
			t.Errorf("%s in a record is read as %s, %v, want %s", sent, old["v"], err, want)
		}
	}
}

// TestWhatParseRefusesHasOneFormToo is about values that a program or an old record can have.
func TestWhatParseRefusesHasOneFormToo(t *testing.T) {
	for text, want := range map[string]string{
		`"\ud800"`:             "\"\ufffd\"",
		`"\udc00\ud800"`:       "\"\ufffd\ufffd\"",
		`"\ud800\ud83d\ude00"`: "\"\ufffd😀\"",
		`"\ud800x"`:            "\"\ufffdx\"",
		`"\ud800\n"`:           "\"\ufffd\\n\"",
		`"\u0000"`:             `"\u0000"`,
		`"\u12`:                `"\u12`,
		`"\uzzzz\/"`:           `"\uzzzz/"`,
		`"\`:                   `"\`,
		`\ud83d\ude0`:          "\ufffd\\ude0",
	} {
		if got := object.Canonical([]byte(text)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// TestEncodersOfOneTextAgree takes texts that programs get wrong in the escapes of several languages.
func TestEncodersOfOneTextAgree(t *testing.T) {
	for _, text := range hardtext.All() {
		want := string(object.AppendString(nil, text))
		for encoder, encode := range hardtext.Encoders() {
			o, err := object.Parse([]byte(`{` + encode(text) + `:` + encode(text) + `,"holder":{` + encode(text) +
				`:[` + encode(text) + `]}}`))
			if err != nil {
				t.Errorf("%q by %s: %v", text, encoder, err)
				continue
			}
			if got := string(o[text]); got != want {
				t.Errorf("%q by %s is stored as %s, want %s", text, encoder, got, want)
			}
			if got := string(o["holder"]); got != `{`+want+`:[`+want+`]}` {
				t.Errorf("%q by %s within an object is stored as %s", text, encoder, got)
			}
			set := object.Object{}
			set.Set("v", text)
			if string(set["v"]) != want {
				t.Errorf("%q is set as %s, want %s", text, set["v"], want)
			}
		}
	}
}

func TestDuplicatesByEscapesAreRefused(t *testing.T) {
	for _, in := range []string{`{"a/b":1,"a\/b":2}`, `{"o":{"é":1,"\u00e9":2}}`, `{"😀":1,"\ud83d\ude00":1}`,
		`{"\u0075uid":"x","uuid":"y"}`} {
		if o, err := object.Parse([]byte(in)); err == nil || !strings.Contains(err.Error(), "duplicate") {
			t.Errorf("%s: %s, %v", in, o.Encode(), err)
		}
	}
}

func TestCanonicalizeReplacesValues(t *testing.T) {
	o := object.Object{"a": json.RawMessage(`"\u0061"`), "b": json.RawMessage(`1`), "c": nil}
	before := o["a"]
	o.Canonicalize()
	if string(o["a"]) != `"a"` || string(o["b"]) != "1" || o["c"] != nil || string(before) != `"\u0061"` {
		t.Errorf("got %s, and the value %s", o, before)
	}
}

// TestPlainTextIsNotCopied guards the hot path: texts without escapes, or with those that must be, are not copied.
func TestPlainTextIsNotCopied(t *testing.T) {
	for _, text := range []string{book, `"中文 😀"`, `{"text":"one\ntwo\t\"three\" \\ \u0001"}`} {
		data := []byte(text)
		if n := testing.AllocsPerRun(10, func() { object.Canonical(data) }); n != 0 {
			t.Errorf("%.40s: %v allocations", text, n)
		}
	}
}

// FuzzCanonical compares with what another encoder makes of the same text.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`"\u0061\/\ud83d\ude00\ud800"`, `{"a\/":["\u001f\n\u000A",1.0]}`, `"\\\u005c\u0022"`,
		book} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := object.Canonical(data)
		if again := object.Canonical(got); string(again) != string(got) {
			t.Fatalf("%q becomes %q and then %q", data, got, again)
		}
		if !utf8.Valid(data) {
			return
		}
		text, err := jsontext.AppendFormat(nil, data, jsontext.PreserveRawStrings(true))
		if err != nil {
			return
		}
		want, err := jsontext.AppendFormat(nil, data, jsontext.PreserveRawStrings(false))
		if err != nil {
			t.Fatal(err)
		}
		if got := object.Canonical(text); string(got) != string(want) {
			t.Fatalf("%s becomes %s, want %s", text, got, want)
		}
	})
}
