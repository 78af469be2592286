package driver_test

import (
	"errors"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func TestSpecCheck(t *testing.T) {
	keys := func([]byte) []driver.Key { return nil }
	for _, c := range []struct {
		name  string
		spec  driver.Spec
		valid bool
	}{
		{"no index", driver.Spec{Name: "Books"}, true},
		{"indexes", driver.Spec{Name: "Books", Keys: keys,
			Indexes: []driver.Index{{Name: "a", Parts: 1}, {Name: "b", Parts: 4}}}, true},
		{"no name", driver.Spec{}, false},
		{"an index without a name", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Parts: 1}}}, false},
		{"duplicate index", driver.Spec{Name: "Books", Keys: keys,
			Indexes: []driver.Index{{Name: "a", Parts: 1}, {Name: "a", Parts: 2}}}, false},
		{"no parts", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a"}}}, false},
		{"too many parts", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a", Parts: 5}}},
			false},
		{"no function for keys", driver.Spec{Name: "Books", Indexes: []driver.Index{{Name: "a", Parts: 1}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) { checkResult(t, c.spec.Check(), c.valid) })
	}
}

func TestQueryCheck(t *testing.T) {
	two, multi := driver.Index{Name: "a", Parts: 2}, driver.Index{Name: "a", Parts: 2, Multi: true}
	parts := func(n int) [][]byte { return make([][]byte, n) }
	for _, c := range []struct {
		name  string
		query driver.Query
		index driver.Index
		valid bool
	}{
		{"everything", driver.Query{Limit: 1}, two, true},
		{"a range after equal parts", driver.Query{Equal: parts(1), From: []byte("x"), Limit: 1}, two, true},
		{"all parts", driver.Query{Equal: parts(2), Limit: 1}, two, true},
		{"all parts of an index with several keys", driver.Query{Equal: parts(2), Limit: 1}, multi, true},
		{"no index", driver.Query{Limit: 1}, driver.Index{}, false},
		{"too many parts", driver.Query{Equal: parts(3), Limit: 1}, two, false},
		{"a lower bound after all parts", driver.Query{Equal: parts(2), From: []byte("x"), Limit: 1}, two, false},
		{"an upper bound after all parts", driver.Query{Equal: parts(2), To: []byte("x"), Limit: 1}, two, false},
		{"a range of an index with several keys", driver.Query{Equal: parts(1), Limit: 1}, multi, false},
		{"no limit", driver.Query{}, two, false},
	} {
		t.Run(c.name, func(t *testing.T) { checkResult(t, c.query.Check(c.index), c.valid) })
	}
}

func checkResult(t *testing.T, err error, valid bool) {
	t.Helper()
	if (err == nil) != valid || err != nil && !errors.Is(err, errs.Internal) {
		t.Errorf("got %v, want valid: %v", err, valid)
	}
}
