package console_test

import (
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/store"
)

// The first object of a new installation is of a store whose objects name none of another: there are none yet.
func TestTheFirstStepsOfferAStoreWhoseObjectsNameNoOthers(t *testing.T) {
	t.Parallel()
	all := []store.Options{
		{Name: "Comments"},
		{Name: "Drafts",
			References: []store.Reference{{Field: "post", Target: "Posts", Required: true, OnDelete: store.OnDeleteKeep}}},
		{Name: "Posts"},
	}
	mappings := []store.Mapping{{Source: "Comments", Target: "Posts", Key: "post", Array: "comments"}}
	for count, want := range map[int]string{3: "Posts", 1: "Comments"} {
		links := mappings
		if count == 1 {
			links = nil
		}
		o := stores(t, links, all[:count]...)
		f := startUsers(t, func(c *console.Options) { c.Objects = o })
		page := is(t, f.get(f.Admin, "/console/start"), http.StatusOK)
		shows(t, page, "New object of "+want)
		if strings.Count(page.Text, "New object of ") != 1 {
			t.Errorf("%d stores are offered", strings.Count(page.Text, "New object of "))
		}
	}
}
