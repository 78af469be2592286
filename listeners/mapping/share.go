package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"belfry/pkg/store"
)

// Definition identifies the mappings of a set, and after them those that aggregate: workers whose definitions are equal
// compute equal entries and aggregates from equal objects, and may run each other's rounds.
func Definition(set *store.Set) string {
	type definition struct {
		store.Mapping
		When string // instead of the compiled condition
	}
	var all []definition
	for _, m := range slices.Concat(set.Mappings(), set.Aggregating()) {
		d := definition{Mapping: m}
		if m.When != nil {
			d.When = fmt.Sprint(m.When)
		}
		all = append(all, d)
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic("mapping: " + err.Error()) // texts and numbers can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}
