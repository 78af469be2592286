package driver_test

import (
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func TestSpecCheck(t *testing.T) {
	keys := func(string, []byte) []driver.Key { return nil }
	for _, c := range []struct {
		name string
		spec driver.Spec
		good bool
	}{
		{"no index", driver.Spec{Name: "Books"}, true},
		{"indexes", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a", Parts: 1}, {Name: "b", Parts: 4}}}, true},
		{"no name", driver.Spec{}, false},
		{"an index without a name", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Parts: 1}}}, false},
		{"a name twice", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a", Parts: 1}, {Name: "a", Parts: 2}}}, false},
		{"no parts", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a"}}}, false},
		{"too many parts", driver.Spec{Name: "Books", Keys: keys, Indexes: []driver.Index{{Name: "a", Parts: 5}}}, false},
		{"no function for keys", driver.Spec{Name: "Books", Indexes: []driver.Index{{Name: "a", Parts: 1}}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.spec.Check(); (err == nil) != c.good || err != nil && errs.KindOf(err) != errs.Internal {
				t.Errorf("it is %v", err)
			}
		})
	}
}
