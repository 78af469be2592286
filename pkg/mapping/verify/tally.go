package verify

import (
	"maps"
	"slices"

	"belfry/pkg/object"
	"belfry/pkg/store"
)

// tally is how many entries an array has, or should have by the objects that name its target, and the sum of their
// hashes.
//
// The tallies of two arrays are equal if both have the same entries, in any order. If not, they are equal once in 2^64,
// since each verification seeds its hashes at random: less often than a disk returns a wrong byte that no checksum
// detects.
type tally struct {
	entries int
	sum     uint64
}

func (t tally) plus(more tally) tally {
	return tally{entries: t.entries + more.entries, sum: t.sum + more.sum}
}

// span is a range of uuids.
type span struct {
	from, to string // to is not in it; "": it has no end
}

// precedesEnd reports whether a uuid is in the span or before it.
func (s span) precedesEnd(uuid string) bool { return s.to == "" || uuid < s.to }

func (s span) has(uuid string) bool { return uuid >= s.from && s.precedesEnd(uuid) }

// naming is that an object names a target.
type naming struct {
	source   string
	target   store.Target // with the owner of the object if the mapping asks for that
	adds     tally        // to that of the target
	tooLarge bool         // therefore it adds nothing
}

// tallies are those of the targets in a span, which becomes smaller when they would be more than most.
type tallies struct {
	span
	most     int
	of       map[store.Target]tally
	tooLarge []naming
}

func newTallies(from string, most int) *tallies {
	return &tallies{span: span{from: from}, most: most, of: map[store.Target]tally{}}
}

func (n *tallies) add(x naming) {
	if !n.has(x.target.UUID) {
		return
	}
	if x.tooLarge && len(n.tooLarge) < MaxDifferences {
		n.tooLarge = append(n.tooLarge, x)
	}
	n.of[x.target] = n.of[x.target].plus(x.adds) // also if it adds nothing
	if len(n.of) > n.most {
		n.shorten()
	}
}

// shortenBy is the part of the targets that shorten removes: few, so that there are few spans.
const shortenBy = 8

// shorten removes the last of the targets in the order of their uuids. A sample shows where they begin: the order in
// which a map is iterated over is that of hashes.
func (n *tallies) shorten() {
	const size = 1000
	sample := make([]string, 0, size)
	for target := range n.of {
		if sample = append(sample, target.UUID); len(sample) == size {
			break
		}
	}
	slices.Sort(sample)
	sample = slices.Compact(sample)
	if len(sample) == 1 { // a target that strangers of many owners name
		n.most *= 2
		return
	}
	n.to = sample[len(sample)-max(1, len(sample)/shortenBy)]
	maps.DeleteFunc(n.of, func(target store.Target, _ tally) bool { return !n.has(target.UUID) })
	n.tooLarge = slices.DeleteFunc(n.tooLarge, func(x naming) bool { return !n.has(x.target.UUID) })
}

// take removes the tally of a target.
func (n *tallies) take(target store.Target) tally {
	t := n.of[target]
	delete(n.of, target)
	return t
}

// Unnamed is how many objects have a value in the key of a mapping that names nothing. That is not a difference: such
// a value may be meant.
type Unnamed struct {
	Source  string `json:"source"`
	Key     string `json:"key"`
	Target  string `json:"target"`
	Objects int    `json:"objects"`
	UUID    string `json:"uuid"`   // the first of them
	Detail  string `json:"detail"` // why its key names nothing
}

func (u *Unnamed) add(more Unnamed) {
	if more.Objects > 0 && (u.Objects == 0 || more.UUID < u.UUID) {
		u.UUID, u.Detail = more.UUID, more.Detail
	}
	u.Objects += more.Objects
}

// unnamedIn counts those of a page.
func (c *check) unnamedIn(page []store.Stored) (found Unnamed) {
	for _, x := range page {
		if why := store.WhyUnnamed(object.Field(x.Body, c.m.Key)); why != "" {
			found.add(Unnamed{Objects: 1, UUID: x.UUID, Detail: why})
		}
	}
	return found
}
