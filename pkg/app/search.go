package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/search"
)

// searched returns the stores whose text is indexed.
func (a *serving) searched() (stores []search.Indexed) {
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
		if s := a.config.Stores[name]; len(s.Search.Fields) > 0 {
			of := a.set.Store(name)
			stores = append(stores, search.Indexed{
				Store: of, Settings: search.Settings{Fields: s.Search.Fields, Language: s.Search.Language, Backend: s.Backend, Rule: of.SearchRule()},
			})
		}
	}
	return stores
}

// searching indexes the text of the stores that are searched, and answers searches.
type searching struct {
	app     *App
	service *search.Service // nil: no store is searched
}

func (s *searching) part() part.Part[*serving] {
	return part.Part[*serving]{Name: "the search indexes", Start: s.start, Reload: s.reload, Stop: func(context.Context) error {
		if s.service != nil {
			s.service.Close()
		}
		return nil
	}, Check: s.app.unsearchable}
}

func (s *searching) start(_ context.Context, first *serving) (err error) {
	s.service, err = s.open(first)
	first.search = s.service
	return err
}

// open starts the service; nil where no store is searched.
func (s *searching) open(g *serving) (*search.Service, error) {
	stores := g.searched()
	if stores == nil {
		return nil, nil
	}
	return search.Start(search.Options{
		Conn: s.app.bus.Conn(), JetStream: s.app.bus.JetStream(), Folder: plan.SearchFolder(g.config), Stores: stores, Logger: s.app.log,
	})
}

// reload has the service index what another configuration says. Indexes of stores that are not searched any more stay in their folders.
func (s *searching) reload(_ context.Context, _, next *serving) (part.Change, error) {
	next.search = s.service
	if s.service != nil {
		return part.Change{Apply: func() {
			if err := s.service.Reload(next.searched()); err != nil {
				next.log.Error("a store can't be searched until the next reload or start", "error", err)
			}
		}}, nil
	}
	opened, err := s.open(next)
	if err != nil {
		return part.Change{}, err
	}
	next.search = opened
	return part.Change{Apply: func() { s.service = opened }, Cancel: func() {
		if opened != nil {
			opened.Close()
		}
	}}, nil
}

// searchStatus returns the states of the indexes of this process.
func (a *App) searchStatus() []search.Status {
	if s := a.now().search; s != nil {
		return s.Status()
	}
	return nil
}

// unsearchable lists the stores whose text this process is still indexing, or whose index is late, for whoever asks whether belfry is ready.
func (a *App) unsearchable() (all []string) {
	for _, s := range a.searchStatus() {
		if !s.Ready {
			all = append(all, "the text of "+s.Store+" is being indexed: searches by q are refused until then")
		}
		if s.Late {
			all = append(all, fmt.Sprintf("the search index of %s is %d events behind the log: searches by q find what was there before", s.Store, s.Behind))
		}
	}
	return all
}

var (
	searchReadyDesc   = prometheus.NewDesc("belfry_search_ready", "1 while the index of a store's text answers searches.", []string{"store"}, nil)
	searchObjectsDesc = prometheus.NewDesc("belfry_search_objects", "Objects in the index of a store's text.", []string{"store"}, nil)
	searchBehindDesc  = prometheus.NewDesc("belfry_search_behind", "Events of the log, of all stores, that the index of a store's text has not followed yet.", []string{"store"}, nil)
)

// collectSearch adds the metrics of searching.
func (a *App) collectSearch(gauge func(*prometheus.Desc, float64, ...string)) {
	for _, s := range a.searchStatus() {
		gauge(searchReadyDesc, oneIf(s.Ready), s.Store)
		gauge(searchObjectsDesc, float64(s.Objects), s.Store)
		gauge(searchBehindDesc, float64(s.Behind), s.Store)
	}
}
