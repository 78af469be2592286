package console

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/account/admin"
	"belfry/pkg/api/console/manual"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

// Bounds of a search of places.
const (
	maxPlaceQuery = 200 // bytes
	maxPlacePages = 5   // of the documentation
	maxPlaceUsers = 5
	minPlaceUUID  = 3  // characters of an object's uuid, so that the first keys that somebody types read nothing
	maxPlaceReads = 50 // stores that are asked for a uuid
	placeReaders  = 8  // at once
	placeTime     = 300 * time.Millisecond
)

// destinations are the data of the page, and of its part, that leads anywhere in the console.
type destinations struct {
	Query string
	Found []destination
}

// destination is somewhere to go.
type destination struct{ Title, About, URL string }

// finder finds users for the search of places.
type finder interface {
	Search(ctx context.Context, query, after string, limit int) (page []admin.Account, next string, err error)
}

var _ finder = (*admin.Admin)(nil)

// goTo shows what a query finds: views, stores and users by a part of their names, objects by their
// uuids, and pages of the documentation. A script has the views and stores in the page, and asks for the rest.
func (c *Console) goTo(r *request) error {
	p := destinations{Query: httpkit.Truncate(strings.TrimSpace(strings.ToValidUTF8(r.Query("q"), "")), maxPlaceQuery)}
	if p.Query != "" {
		ctx, err := r.Call()
		if err != nil {
			return err
		}
		if !r.Partial() {
			p.Found = c.knownPlaces(p.Query)
		}
		p.Found = append(p.Found, c.objectPlaces(ctx, p.Query)...)
		p.Found = append(p.Found, docsPlaces(p.Query)...)
	}
	if r.Partial() {
		return r.render(http.StatusOK, "go", "places", p)
	}
	return r.Page("go", "Go to", p)
}

// knownPlaces returns views and stores.
func (c *Console) knownPlaces(query string) (all []destination) {
	for _, l := range c.nav {
		if strings.Contains(strings.ToLower(l.Title), strings.ToLower(query)) {
			all = append(all, destination{l.Title, "Page", l.URL})
		}
	}
	for _, l := range c.stores {
		if strings.Contains(strings.ToLower(l.Title), strings.ToLower(query)) {
			all = append(all, destination{l.Title, "Store", l.URL})
		}
	}
	return all
}

// docsPlaces returns pages of the documentation.
func docsPlaces(query string) (all []destination) {
	hits := manual.Search(query)
	for _, h := range hits[:min(len(hits), maxPlacePages)] {
		title := h.Title
		if h.Section != "" {
			title += " › " + h.Section
		}
		all = append(all, destination{title, "Documentation", docsAt(h.URL)})
	}
	return all
}

// objectPlaces returns the users that a name or an address finds, and the objects with a uuid. Stores that do not reply
// in time are left out.
func (c *Console) objectPlaces(ctx context.Context, query string) (all []destination) {
	ctx, cancel := context.WithTimeout(ctx, placeTime)
	defer cancel()
	if c.finder != nil {
		page, _, _ := c.finder.Search(ctx, query, "", maxPlaceUsers) // without those that can't be found in time
		for _, a := range page {
			all = append(all, destination{cmp.Or(nameIn(a.User), firstOf(addressesOf(a)), a.UUID), "User",
				pathOf("users", a.UUID)})
		}
	}
	if len(query) < minPlaceUUID || !object.ValidUUID(query) || c.names.set == nil {
		return all
	}
	stores := c.stores[:min(len(c.stores), maxPlaceReads)]
	exists := make([]bool, len(stores))
	var reads errgroup.Group
	reads.SetLimit(placeReaders)
	for i, l := range stores {
		reads.Go(func() error {
			exists[i], _ = c.names.set.Store(l.Title).Exists(ctx, query) // without those that can't be read
			return nil
		})
	}
	_ = reads.Wait()
	var found []named
	for i, l := range stores {
		if exists[i] {
			found = append(found, c.names.of(l.Title, query))
		}
	}
	c.names.fill(ctx, pointers(found))
	for _, o := range found {
		at := pathOf("objects", o.Store, "object", o.UUID)
		all = append(all, destination{cmp.Or(o.Name, o.UUID), "Object of " + o.Store, at})
	}
	return all
}
