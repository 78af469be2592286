package check

import (
	"encoding/json"
	"math/big"
	"strconv"

	"belfry/test/chaos/history"
)

// aggregates computes every aggregate from the objects and compares.
func aggregates(s *history.Segment, r *Report) {
	for _, m := range history.All() {
		if len(m.Aggregates) == 0 {
			continue
		}
		named := map[string][]history.State{} // sources by the uuid of the target that they name
		for o, state := range s.Final {
			if o.Store != m.Name {
				continue
			}
			for _, target := range history.Targets(state.Body, m.Key) {
				named[target] = append(named[target], state)
			}
		}
		for o, state := range s.Final {
			if o.Store != m.Target {
				continue
			}
			for _, a := range m.Aggregates {
				r.Aggregates++
				if has, want := history.Value(state.Body, a.Property), aggregate(a, named[o.UUID]); !sameValue(has, want) {
					r.add(WrongAggregate, o, "%s is %q; %s of the %d objects of %s that name it is %q", a.Property, has,
						a.Function, len(named[o.UUID]), m.Name, want)
				}
			}
		}
	}
}

// aggregate is the value of an aggregate of objects, as JSON; "" if it is absent.
func aggregate(a history.Aggregate, sources []history.State) string {
	if a.Function == history.Count {
		return strconv.Itoa(len(sources))
	}
	sum, best := new(big.Rat), ""
	for _, state := range sources {
		value := history.Value(state.Body, a.Field)
		if a.Function == history.Sum {
			if n := number(value); n != nil {
				sum.Add(sum, n)
			}
			continue
		}
		if value != "" && value != "null" && (best == "" || less(value, best) == (a.Function == history.Min)) {
			best = value
		}
	}
	if a.Function == history.Sum {
		return sum.FloatString(9) // clients write fewer digits
	}
	return best
}

// number returns the value of a JSON number; nil for another value.
func number(value string) *big.Rat {
	if value == "" || !json.Valid([]byte(value)) || value[0] != '-' && (value[0] < '0' || value[0] > '9') {
		return nil
	}
	n, _ := new(big.Rat).SetString(value)
	return n
}

// less compares two numbers or two strings.
func less(a, b string) bool {
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) < 0
	}
	var x, y string
	_, _ = json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)
	return x < y
}

func sameValue(a, b string) bool {
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) == 0
	}
	return a == b
}
