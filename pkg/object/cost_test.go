package object_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// allocated returns the bytes that a call allocates: the least of some calls, as the process does other things too.
func allocated(call func()) (least uint64) {
	for i := range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call()
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; i == 0 || bytes < least {
			least = bytes
		}
	}
	return least
}

// members returns an object of so many members, around another one.
func members(n int, inner string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i := range n - 1 {
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	return b.String() + `"_":` + inner + `}`
}

// Members cost many times their bytes while they are parsed, so an object, with those around it, has no more than one
// that a store takes.
func TestMembersOfObjectsAreBounded(t *testing.T) {
	const most = object.MaxMembers
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"as many as allowed":             {members(most, "0"), true},
		"one more":                       {members(most+1, "0"), false},
		"within another object":          {`{"a":` + members(most-1, "0") + `}`, true},
		"too many within another object": {`{"a":` + members(most, "0") + `}`, false},
		"within an array":                {`{"a":[1,{},` + members(most, "0") + `]}`, false},
		"nested objects":                 {members(most/2, members(most/2, members(most/2, "0"))), false},
		"one after the other": {`{"a":[` + members(most-1, "0") + `,` + members(most-1, "0") + `],"b":` +
			members(most-2, "0") + `}`, true},
		"colons in texts": {`{"a":"` + strings.Repeat(`:\":`, most) + `"}`, true},
	} {
		_, err := object.Parse([]byte(c.text))
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), "members at byte")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	refused := []byte(members(20*most, "0"))
	if bytes := allocated(func() { _, _ = object.Parse(refused) }); bytes > 64<<10 {
		t.Errorf("an object of %d bytes is refused with %d bytes allocated", len(refused), bytes)
	}
}

// A patch is copied a few times, however deeply it is nested.
func TestAMergePatchCostsAsMuchAsItIsLong(t *testing.T) {
	const levels = object.MaxDepth - 2
	inner := `"` + strings.Repeat("a", 1<<20) + `"`
	for name, target := range map[string]string{"new": `{}`,
		"changed": strings.Repeat(`{"a":`, levels) + `{"b":0}` + strings.Repeat("}", levels)} {
		stored := parse(t, target)
		patch := parse(t, strings.Repeat(`{"a":`, levels)+`{"b":`+inner+`}`+strings.Repeat("}", levels))
		bytes := allocated(func() {
			merged, err := object.MergePatch(stored, patch)
			if err != nil || !merged.Equal(patch) {
				t.Errorf("%s: %v", name, err)
			}
		})
		if most := uint64(8 * len(inner)); bytes > most {
			t.Errorf("%s: %d bytes are allocated for a patch of %d, at most %d are expected", name, bytes, len(inner),
				most)
		}
	}
}
