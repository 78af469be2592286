package store_test

import (
	"bytes"
	"fmt"
	"testing"

	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// FuzzListsHideNothing: whatever a client sends as filter, order and cursor, a list is refused as invalid, or has only
// objects that the client may see, without their private fields. A cursor that belfry sealed is changed and sealed
// again, as a client could who knew the key.
func FuzzListsHideNothing(f *testing.F) {
	sealer, err := seal.New(seal.NewKey())
	if err != nil {
		f.Fatal(err)
	}
	all, _ := open(f, store.Options{Sealer: sealer, Indexes: noteIndexes, Private: []string{"pin"}})
	for i := range 40 {
		user, public := []string{"ada", "bob", "eve"}[i%3], i%5 == 0
		save(f, all, fmt.Sprintf("n%02d", i),
			fmt.Sprintf(`{"user":%q,"public":%t,"year":%d,"pin":"secret"}`, user, public, i%4))
	}
	var stores []*store.Store
	for _, rules := range []policy.Rules{
		{Owner: true}, {OwnerField: "user", Get: "isOwner || object.public == true"},
		{OwnerField: "user", List: "object.year > 1 && isOwner || object.public"},
		{Get: "object.user in user.names || object.public"},
		{Get: "user.names.exists(n, n == object.user) || object.uuid in user.ids"},
	} {
		stores = append(stores, all.WithOptions(func(o *store.Options) { o.Policy = compile(f, rules) }))
	}
	for _, filter := range []string{"", "year >= 2", `user == "bob"`, "public == true && year < 3", `pin == "secret"`,
		`user == "bob" || public`} {
		for _, sort := range []string{"", "year", "-year", "pin"} {
			f.Add(filter, sort, []byte{}, byte(0), byte(0), byte(3))
			f.Add(filter, sort, []byte{0, 1, 255}, byte(40), byte(1), byte(1))
			f.Add(filter, sort, []byte("AAAA"), byte(255), byte(2), byte(7))
			f.Add(filter, sort, []byte{0, 3, 7}, byte(8), byte(3), byte(2))
			f.Add(filter, sort, []byte{1}, byte(9), byte(4), byte(1))
		}
	}
	const whole = 255 // the cursor is the text itself
	f.Fuzz(func(t *testing.T, filter, sort string, change []byte, at, rule, limit byte) {
		s := stores[int(rule)%len(stores)]
		o := store.ListOptions{Filter: filter, Sort: sort, Limit: 1 + int(limit)%10}
		first := looks(t, s, o)
		if at == whole {
			o.Cursor = string(change)
			looks(t, s, o)
			return
		}
		content, ok := sealer.Open("cursor 2 of Books", first)
		if !ok {
			return // there is no second page
		}
		content = bytes.TrimRight(content, "\x00")
		for i, b := range change {
			if place := int(at) + i; place < len(content) {
				content[place] ^= b
			} else {
				content = append(content, b)
			}
		}
		o.Cursor = sealer.Seal("cursor 2 of Books", content)
		looks(t, s, o)
	})
}

// looks reads a page as bob, and returns the cursor of the next.
func looks(t *testing.T, s *store.Store, o store.ListOptions) string {
	t.Helper()
	// Bob's and public ones.
	bob := store.Call{Client: true, User: parse(t, `{"uuid":"bob","names":["bob","max"],"ids":["n01","n05","n10"]}`)}
	page, err := s.List(store.WithCall(t.Context(), bob), o)
	if err != nil {
		kind(t, err, errs.Invalid)
		return ""
	}
	for _, found := range page.Objects {
		if !bytes.Contains(found.Body, []byte(`"user":"bob"`)) &&
			!bytes.Contains(found.Body, []byte(`"public":true`)) || bytes.Contains(found.Body, []byte("secret")) {
			t.Fatalf("%+v shows %s", o, found.Body)
		}
	}
	return page.Next
}
