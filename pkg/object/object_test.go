package object_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

func TestEncodeWritesUUIDFirstThenByName(t *testing.T) {
	o := object.Object{"z": raw("1"), "uuid": raw(`"u"`), "a": raw("2"), `q"`: raw("3"), "": raw("4")}
	if got, want := string(o.Encode()), `{"uuid":"u","":4,"a":2,"q\"":3,"z":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(object.Object{}.Encode()); got != "{}" {
		t.Errorf("an empty object is %s", got)
	}
}

func TestMarshalJSON(t *testing.T) {
	got, err := json.Marshal(map[string]object.Object{"o": {"a": raw("1")}, "n": nil})
	if err != nil || string(got) != `{"n":null,"o":{"a":1}}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestSetTextNamesCloneEqual(t *testing.T) {
	o := object.Object{}
	o.Set("s", "é\"")
	o.Set("n", 1)
	if s, ok := o.Text("s"); !ok || s != "é\"" {
		t.Errorf("s = %q, %v", s, ok)
	}
	if _, ok := o.Text("n"); ok {
		t.Error("a number is text")
	}
	if _, ok := o.Text("absent"); ok {
		t.Error("an absent field is text")
	}
	if got := o.Names(); !slices.Equal(got, []string{"n", "s"}) {
		t.Errorf("names %q", got)
	}
	c := o.Clone()
	if !c.Equal(o) {
		t.Error("a clone is not equal")
	}
	c.Set("n", 2)
	if c.Equal(o) || string(o["n"]) != "1" {
		t.Error("a clone shares its fields")
	}
	for _, other := range []object.Object{{}, {"s": o["s"]}, {"s": o["s"], "m": o["n"]}} {
		if o.Equal(other) {
			t.Errorf("%s equals %s", o.Encode(), other.Encode())
		}
	}
}

func TestSetPanicsForWhatHasNoJSON(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	object.Object{}.Set("c", make(chan int))
}

func TestOf(t *testing.T) {
	o, err := object.Of(struct {
		B int    `json:"b"`
		A string `json:"a"`
	}{1, "x"})
	if err != nil || string(o.Encode()) != `{"a":"x","b":1}` {
		t.Errorf("got %s, %v", o.Encode(), err)
	}
	for _, v := range []any{1, "x", []int{1}, nil, math.Inf(1)} {
		if _, err := object.Of(v); !errors.Is(err, errs.Invalid) {
			t.Errorf("Of(%v): %v, want invalid", v, err)
		}
	}
}

func TestAppendStringNeverWritesInvalidJSON(t *testing.T) {
	for _, s := range []string{"", "a", "\"\\\n\x01", "é", "\xff", "a\xffb"} {
		if got := object.AppendString(nil, s); !json.Valid(got) {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}
