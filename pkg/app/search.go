package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/search"
)

// searched returns the stores whose text is indexed.
func (a *serving) searched() (stores []search.Indexed) {
	for _, name := range names(a.config.Stores) {
		if s := a.config.Stores[name]; len(s.Search.Fields) > 0 {
			of := a.set.Store(name)
			stores = append(stores, search.Indexed{
				Store: of, Settings: search.Settings{Fields: s.Search.Fields, Language: s.Search.Language, Backend: s.Backend, Rule: of.SearchRule()},
			})
		}
	}
	return stores
}

// startSearch indexes the text of the stores that are searched, and answers searches.
func (a *serving) startSearch(context.Context) error {
	stores := a.searched()
	if stores == nil {
		return nil
	}
	s, err := search.Start(search.Options{
		Conn: a.bus.Conn(), JetStream: a.bus.JetStream(), Folder: searchFolder(a.config), Stores: stores, Logger: a.log, Rate: a.walkRate,
	})
	if err != nil {
		return err
	}
	a.search = s
	a.onStop("the search indexes", func(context.Context) error { s.Close(); return nil })
	return nil
}

// searchStatus returns the states of the indexes of this process.
func (a *App) searchStatus() []search.Status {
	if a.search == nil {
		return nil
	}
	return a.search.Status()
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

// searchFolder is the folder of the indexes of a process.
func searchFolder(c *config.Config) string { return filepath.Join(c.Data, "search") }
