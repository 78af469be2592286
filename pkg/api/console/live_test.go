package console_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/console"
)

func TestLiveOffersTheStoresThatCanBeStreamed(t *testing.T) {
	t.Parallel()
	f := start(t, console.Options{Live: &console.Live{Stores: []string{"Books", hostile}}})
	r := is(t, f.get(f.Admin, "/console/live"), http.StatusOK)
	if shows(t, r, `name="store" value="Books"`, `name="event" value="Store.Saved"`, "/console/assets/live.",
		"needs JavaScript"); strings.Contains(r.Text, hostile) {
		t.Error("a name is not escaped")
	}
	is(t, f.get("", "/console/live"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/live"), http.StatusForbidden)
	none := start(t, console.Options{Live: &console.Live{}})
	shows(t, is(t, none.get(none.Admin, "/console/live"), http.StatusOK), "No store can be streamed")
}
