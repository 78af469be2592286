package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"belfry/listeners/mapping/route"
	"belfry/listeners/rounds"
	"belfry/pkg/errs"
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

// Run runs a round that another process asks for, together with those of events that this process has received, and
// calls done when it has ended. It does not block.
func (w *Worker) Run(r route.Round, done func(error)) {
	mappings := w.set.Mappings()
	if r.Mapping < 0 || r.Mapping >= len(mappings) || r.Target == "" || r.Source == "" {
		done(errs.New(errs.Invalid, "mapping: another process asks for a round of a mapping that there is not"))
		return
	}
	w.RunFor(rounds.Key{Mapping: &mappings[r.Mapping], Target: r.Target}, r, done)
}
