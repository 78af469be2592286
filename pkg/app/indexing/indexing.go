// Package indexing has the part of a process that indexes the text of stores and answers searches.
package indexing

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/search"
	"belfry/pkg/walk"
)

// Searched returns the stores whose text is indexed.
func Searched(g *serving.Generation) (stores []search.Indexed) {
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		if s := g.Config.Stores[name]; len(s.Search.Fields) > 0 {
			of := g.Set.Store(name)
			stores = append(stores, search.Indexed{
				Store: of, Settings: search.Settings{Fields: s.Search.Fields, Language: s.Search.Language,
					Backend: s.Backend, Rule: of.SearchRule()},
			})
		}
	}
	return stores
}

// Indexing indexes the text of the stores that are searched, and answers searches.
type Indexing struct {
	Served  *serving.Current
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Rate    *walk.Rate // of all walks of the process

	service *search.Service // nil: no store is searched
}

// Part returns the functions that start, reload and stop it.
func (s *Indexing) Part() serving.Part {
	return serving.Part{Name: "the search indexes", Start: s.start, Reload: s.reload, Check: s.unsearchable,
		Stop: func(context.Context) error {
			if s.service != nil {
				s.service.Close()
			}
			return nil
		}}
}

func (s *Indexing) start(_ context.Context, first *serving.Generation) (err error) {
	s.service, err = s.open(first)
	first.Search = s.service
	s.Metrics.MustRegister(s.collector())
	return err
}

// open starts the service; nil if no store is searched.
func (s *Indexing) open(g *serving.Generation) (*search.Service, error) {
	stores := Searched(g)
	if stores == nil {
		return nil, nil
	}
	return search.Start(search.Options{
		Conn: g.Bus.Conn(), JetStream: g.Bus.JetStream(), Folder: plan.SearchFolder(g.Config), Stores: stores,
		Logger: s.Log, Rate: s.Rate,
	})
}

// reload applies another configuration to the service. Indexes of stores that are no longer searched stay in their
// folders.
func (s *Indexing) reload(_ context.Context, _, next *serving.Generation) (part.Change, error) {
	next.Search = s.service
	if s.service != nil {
		return part.Change{Apply: func() {
			if err := s.service.Reload(Searched(next)); err != nil {
				s.Log.Error("a store can't be searched until the next reload or start", "error", err)
			}
		}}, nil
	}
	opened, err := s.open(next)
	if err != nil {
		return part.Change{}, err
	}
	next.Search = opened
	return part.Change{Apply: func() { s.service = opened }, Cancel: func() {
		if opened != nil {
			opened.Close()
		}
	}}, nil
}

// Walks returns the progress of building the indexes.
func (s *Indexing) Walks() (all []walk.Status) {
	for _, s := range s.Served.Now().SearchStatus() {
		all = append(all, s.Status)
	}
	return all
}

// unsearchable lists the stores whose text this process is still indexing, or whose index lags, for the readiness
// check.
func (s *Indexing) unsearchable() (all []string) {
	for _, s := range s.Served.Now().SearchStatus() {
		if !s.Ready {
			all = append(all, "the text of "+s.Store+" is being indexed: searches by q are refused until then")
		}
		if s.Late {
			all = append(all,
				fmt.Sprintf("the search index of %s is %d events behind the log: searches by q find what was "+
					"there before", s.Store, s.Behind))
		}
	}
	return all
}

var (
	searchReadyDesc = prometheus.NewDesc("belfry_search_ready",
		"1 while the index of a store's text answers searches.", []string{"store"}, nil)
	searchObjectsDesc = prometheus.NewDesc("belfry_search_objects", "Objects in the index of a store's text.",
		[]string{"store"}, nil)
	searchBehindDesc = prometheus.NewDesc("belfry_search_behind",
		"Events of the log, of all stores, that the index of a store's text has not followed yet.", []string{"store"},
		nil)
)

// collector are the metrics of searching.
func (s *Indexing) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		for _, s := range s.Served.Now().SearchStatus() {
			values.Gauge(searchReadyDesc, prom.OneIf(s.Ready), s.Store)
			values.Gauge(searchObjectsDesc, float64(s.Objects), s.Store)
			values.Gauge(searchBehindDesc, float64(s.Behind), s.Store)
		}
	}, searchReadyDesc, searchObjectsDesc, searchBehindDesc)
}
