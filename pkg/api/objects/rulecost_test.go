package objects_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/policy"
)

// Each of these rules costs as much as one evaluation may, so 20 objects would take
// seconds of processor for one request.
func TestAListEndsEarlyWhereItsRuleCostsTooMuch(t *testing.T) {
	t.Parallel()
	f, notes := startNotes(t, policy.Rules{Get: "has(object.public) || object.l.all(a, !(2 in object.l))",
		Update: "object.l.all(a, !(2 in object.l))"})
	costly := `{"l":[` + strings.TrimSuffix(strings.Repeat("1,", 3000), ",") + `]}`
	var public []string
	for i := range 40 {
		uuid, body := fmt.Sprintf("n%02d", i), costly
		if i%2 == 1 { // whatever the last one that was evaluated, one that may be listed follows
			body, public = `{"public":true}`, append(public, uuid)
		}
		save(f, notes, uuid, body)
	}
	var listed []string
	requests := 0
	for next := "/notes?limit=500"; next != ""; requests++ {
		r := f.Do("GET", next, "").Want(200)
		var p page
		r.JSON(&p)
		for _, item := range p.Items {
			listed = append(listed, item.UUID)
		}
		next = linked(r, "next")
	}
	if !slices.Equal(listed, public) {
		t.Errorf("listed %v, want %v", listed, public)
	}
	if requests < 5 {
		t.Errorf("all was listed by %d requests, so one of them evaluated the rule on many objects", requests)
	}
	// One object is no problem, whatever was listed before.
	f.Do("GET", "/notes/n05", "").Want(200)
	f.Do("GET", "/notes/n00", "").Want(401)
	f.Do("PUT", "/notes/n00", `{}`).Want(401)
}
