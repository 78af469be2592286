package console_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
)

// always is a condition that holds for all objects.
type always struct{}

func (always) Holds([]byte) bool { return true }

func TestTheMapDrawsAndListsAllMappingsWithTheirState(t *testing.T) {
	t.Parallel()
	var lagError error
	hangs := false
	g := &console.Graph{
		Stores: []string{"Alone", "Authors", "Books", "Idents", "Reviews", "Users"},
		Mappings: []store.Mapping{
			{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"},
				Cascade: true},
			{Source: "Authors", Target: "Books", Key: "best", Array: "by"}, // closes a circle
			{Source: "Reviews", Target: "Books", Key: "book", Array: "reviews", When: always{}},
			{Source: "Reviews", Target: "Reviews", Key: "of", Array: hostile},
			{Source: "Idents", Target: "Users", Key: "user", Cascade: true},
		},
		Lag: func(ctx context.Context) (map[string]uint64, error) {
			if hangs {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return map[string]uint64{"mapping": 12, "cascade": 3}, lagError
		},
		Fill: func(source, target, _ string) console.Fill {
			return map[string]console.Fill{
				"Books Authors": {Known: true, Targets: 1200, Total: 3400},
				"Authors Books": {Known: true, Done: true, Failed: 2},
				"Reviews Books": {Known: true, Waiting: true}, "Reviews Reviews": {Known: true, Done: true},
			}[source+" "+target]
		},
		Overflow: func(source, _, _ string) uint64 { return map[string]uint64{"Books": 9}[source] },
	}
	v := &runs{}
	f := start(t, console.Options{Graph: g, Operations: []console.Operation{operation(command.Verify.Untyped(), v)}})
	r := is(t, f.get(f.Admin, "/console/map"), http.StatusOK)
	shows(t, r, `href="/console/objects/Alone"`, "Authors.books", "<code>author</code>", "uuid, title",
		"on a condition", "deleted with Users", `href="/console/workers/mapping">12<`,
		`href="/console/workers/cascade">3<`,
		`<span class="tag warn">9</span>`, "not yet", "1,200 of 3,400", "all but 2",
		"waits for processes with another configuration to end", "<td>yes</td>", "6 stores and 5 mappings", "⚠ books",
		"lag 12")
	if n := strings.Count(r.Text, "<path d="); n != 5 || strings.Contains(r.Text, hostile) {
		t.Errorf("%d arrows, or a name that is not escaped:\n%s", n, r.Text)
	}
	// Nothing is drawn outside of the drawing, and no two stores overlap.
	size := regexp.MustCompile(`viewBox="0 0 (\d+) (\d+)"`).FindStringSubmatch(r.Text)
	boxes := regexp.MustCompile(`<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"`).FindAllStringSubmatch(r.Text,
		-1)
	if len(boxes) != 6 || size == nil {
		t.Fatalf("%d stores are drawn", len(boxes))
	}
	for i, a := range boxes {
		if number(t, a[1])+number(t, a[3]) > number(t, size[1]) ||
			number(t, a[2])+number(t, a[4]) > number(t, size[2]) {
			t.Errorf("%v is outside of %v", a[0], size[0])
		}
		for _, b := range boxes[:i] {
			if number(t, a[1]) < number(t, b[1])+number(t, b[3]) && number(t, b[1]) < number(t, a[1])+number(t, a[3]) &&
				number(t, a[2]) < number(t, b[2])+number(t, b[4]) && number(t, b[2]) < number(t, a[2])+number(t, a[4]) {
				t.Errorf("%v and %v overlap", a[0], b[0])
			}
		}
	}

	v.last = &console.Run{Began: time.Now(), Ended: time.Now(),
		Out: &command.Report{Report: &verify.Report{Differences: []verify.Difference{
			{Source: "Reviews", Target: "Books", Array: "reviews"},
			{Source: "Reviews", Target: "Books", Array: "reviews"}, {Source: "Idents", Target: "Users"},
		}, Full: []verify.Full{{Target: "Books", Array: "by"}, {Target: "Books", Array: "reviews"},
			{Target: "Books", Array: "reviews"}}}}}
	shows(t, is(t, f.get(f.Admin, "/console/map"), http.StatusOK), "2 differences", "1 difference<", "no differences",
		"2 arrays at their limit", "1 array at its limit", "⚠ by", "<strong>this process</strong>")
	lagError = errs.Wrap(errors.New("dial nats://ada:secret@bus"), errs.Unavailable, "the bus is unavailable")
	r = is(t, f.get(f.Admin, "/console/map"), http.StatusOK)
	shows(t, r, "The lag is not known: the bus is unavailable", "unknown")
	if strings.Contains(r.Text, "secret") {
		t.Error("the text of another server is shown")
	}
	lagError, hangs = nil, true // until the page gives up
	shows(t, is(t, f.get(f.Admin, "/console/map"), http.StatusOK), "The lag is not known",
		`href="/console/objects/Alone"`)
	hangs = false
	is(t, f.get("", "/console/map"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/map"), http.StatusForbidden)

	empty := start(t, console.Options{Graph: &console.Graph{Lag: g.Lag, Overflow: g.Overflow}})
	elsewhere := start(t, console.Options{Graph: &console.Graph{Stores: g.Stores, Mappings: g.Mappings, Lag: g.Lag}})
	shows(t, is(t, elsewhere.get(elsewhere.Admin, "/console/map"), http.StatusOK),
		`<span class="muted">elsewhere</span>`)
	shows(t, is(t, empty.get(empty.Admin, "/console/map"), http.StatusOK), "No store is mapped into another")
}

func TestLinesOfTheMapDoNotCrossWithoutNeed(t *testing.T) {
	t.Parallel()
	none := func(context.Context) (map[string]uint64, error) { return nil, nil }
	f := start(t, console.Options{Graph: &console.Graph{
		Stores: []string{"Authors", "Books", "Idents", "Reviews", "Users"},
		Mappings: []store.Mapping{
			{Source: "Books", Target: "Authors", Array: "books"}, {Source: "Idents", Target: "Users", Array: "idents"},
			{Source: "Reviews", Target: "Books", Array: "reviews"},
		},
		Lag: none, Overflow: func(_, _, _ string) uint64 { return 0 },
	}})
	r := is(t, f.get(f.Admin, "/console/map"), http.StatusOK)
	rows := map[string]string{}
	for _, box := range regexp.MustCompile(`<rect x="\d+" y="(\d+)"[^>]*><text[^>]*>(\w+)<`).
		FindAllStringSubmatch(r.Text, -1) {
		rows[box[2]] = box[1]
	}
	if len(rows) != 5 || rows["Reviews"] != rows["Books"] || rows["Idents"] != rows["Users"] {
		t.Errorf("the stores are drawn in the rows %v", rows)
	}
}

func number(t *testing.T, text string) (n int) {
	t.Helper()
	for _, digit := range text {
		n = n*10 + int(digit-'0')
	}
	return n
}
