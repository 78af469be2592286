package console_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/listener/deadletter"
)

// A line of JSON that is nested 2000 levels deep has 4000 blanks.
func TestDeepJSONIsNotIndentedIntoMuchMore(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 2000) + "1,1,1,1" + strings.Repeat("]", 2000)
	w := &listeners{letters: map[uint64]*deadletter.Letter{1: {ID: 1, Listener: "cook", Data: []byte(deep)}}}
	f := start(t, console.Options{Workers: w})
	shows(t, is(t, f.get(f.Admin, "/console/letters/1"), http.StatusOK), deep)
	is(t, f.get(f.Admin, "/console/letters/0"), http.StatusNotFound)
	is(t, f.post(f.Admin, "/console/letters", form("act", "drop", "id", "0")), http.StatusBadRequest)

	l := startLibrary(t)
	nested := strings.Repeat("[", 60) + strings.Repeat("1,", 20_000) + "1" + strings.Repeat("]", 60)
	l.save("Books", "deep", `{"title":"Deep","nested":`+nested+`}`)
	r := is(t, l.get(l.Admin, "/console/objects/Books/object/deep"), http.StatusOK)
	shows(t, r, "[[[[1,1,1")
	if len(r.Text) > 1<<20 {
		t.Errorf("a page of %d bytes", len(r.Text))
	}
}
