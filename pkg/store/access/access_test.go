package access_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// The table of the package comment: which fields callers see and set.
func TestWhatCallersSeeAndSet(t *testing.T) {
	rules := policy.Rules{OwnerField: "user"}
	compiled, problems := policy.Compile(rules)
	fields, more := policy.CompileFields(rules, map[string]policy.FieldRule{"phone": {Read: "isOwner"}})
	if len(problems)+len(more) > 0 {
		t.Fatal(problems, more)
	}
	r := access.New(access.Options{
		Store: "Books", Policy: compiled, Fields: fields, Private: []string{"secret"}, ReadOnly: []string{"state"},
		Reserved: []string{"admin"}, Arrays: []string{"entries"}, Binaries: []string{"photos"},
		Logger: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	o := object.Object{"uuid": []byte(`"a"`), "created": []byte(`"2024"`), "user": []byte(`"ada"`)}
	for _, name := range []string{"title", "secret", "_internal", "state", "admin", "entries", "photos", "phone"} {
		o[name] = []byte(`1`)
	}
	as := func(uuid string) object.Object { return object.Object{"uuid": object.AppendString(nil, uuid)} }
	for _, c := range []struct {
		name       string
		caller     access.Caller
		sees, sets string // of title, secret, ...
	}{
		{"the program", access.Caller{}, "_internal admin entries phone photos secret state title user",
			"_internal admin phone secret state title user"},
		{"a trusted client", access.Caller{Client: true, Trusted: true}, "admin entries phone photos state title user",
			"phone state title user"},
		{"the owner", access.Caller{Client: true, User: as("ada")}, "admin entries phone photos state title user",
			"phone title"},
		{"another client", access.Caller{Client: true, User: as("bob")}, "admin entries photos state title user",
			"phone title"},
	} {
		body := o.Encode()
		if c.caller.Client {
			body = r.Visible(body)
		}
		body, err := r.Readable(t.Context(), r.Reader(t.Context(), c.caller), body, o.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := object.Decode(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(seen); got != c.sees {
			t.Errorf("%s sees %s, want %s", c.name, got, c.sees)
		}
		if got := names(r.Settable(c.caller, o)); got != c.sets {
			t.Errorf("%s sets %s, want %s", c.name, got, c.sets)
		}
	}
}

// names returns the fields of an object but for those that every object has.
func names(o object.Object) string {
	all := slices.DeleteFunc(o.Names(), func(name string) bool { return name == "uuid" || name == access.Created })
	slices.Sort(all)
	return strings.Join(all, " ")
}
