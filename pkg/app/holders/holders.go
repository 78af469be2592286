// Package holders lists what holds the memory of a process, for metrics, the doctor and the console.
package holders

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/logbuffer"
	"belfry/internal/memory"
	"belfry/internal/prom"
	"belfry/pkg/api/files"
	"belfry/pkg/app/serving"
	"belfry/pkg/pagememory"
	"belfry/pkg/store/filestore"
)

// Holders know who holds memory.
type Holders struct {
	Served  *serving.Current
	Metrics *prometheus.Registry
	Pages   *pagememory.Budget // of lists in flight
	Uploads *files.Memory      // of uploads in flight
	Lines   *logbuffer.Buffer  // of the log; nil: none are kept
}

// subjectBytes is about what the embedded server's index has for each subject of an event.
const subjectBytes = 216

// Of returns the parts of the process with these backends, that bus and those logins.
func (h *Holders) Of(g *serving.Generation) []memory.Holder {
	all := memory.Whole()
	add := func(part, says string, held, most int64) {
		all = append(all, memory.Holder{Part: part, Says: says, Held: held, Most: most, Of: memory.PartObjects})
	}
	var cache, cacheMost, memTables int64
	for _, backend := range g.Backends {
		if of, ok := backend.(*filestore.Backend); ok {
			m := of.Metrics()
			cache, cacheMost, memTables = cache+m.CacheBytes, cacheMost+m.CacheMost, memTables+int64(m.MemTableBytes)
		}
	}
	add("cache", "blocks of folders that were read (backends.*.file.cache)", cache, cacheMost)
	add("memtables", "objects that were written, and are in no table yet", memTables, 0)
	if n := g.Bus.Subjects(); n > 0 {
		add("events", "the embedded server's index of events, about (bus.events.maxMessages)",
			int64(n)*subjectBytes, g.Config.Bus.Events.MaxMessages*subjectBytes)
	}
	if g.Auth != nil {
		used, most := g.Auth.Passwords.Hasher.Memory()
		add("hashes", "password hashes at work", used, most)
	}
	used, most := h.Uploads.Used()
	add("uploads", "parts of uploads in flight", used, most)
	pages, mostPages := h.Pages.Used()
	add("lists", "pages of lists in flight", int64(pages), int64(mostPages))
	if h.Lines != nil {
		add("log", "the latest lines of the log, for the console", h.Lines.Stats().Bytes, logbuffer.Most)
	}
	return all
}

var (
	heldDesc = prometheus.NewDesc("belfry_memory_bytes",
		"Memory by what holds it. objects, free, runtime and program add up to that of the process.", []string{"part"},
		nil)
	mostDesc = prometheus.NewDesc("belfry_memory_limit_bytes", "Memory that a part may hold.", []string{"part"}, nil)
)

// Part registers the metrics.
func (h *Holders) Part() serving.Part {
	return serving.Part{
		Name: "the metrics of memory",
		Start: func(context.Context, *serving.Generation) error {
			return h.Metrics.Register(prom.Computed(func(_ context.Context, values prom.Values) {
				for _, one := range h.Of(h.Served.Now()) {
					values.Gauge(heldDesc, float64(one.Held), one.Part)
					if one.Most > 0 {
						values.Gauge(mostDesc, float64(one.Most), one.Part)
					}
				}
			}, heldDesc, mostDesc))
		},
		Stop: func(context.Context) error { return nil },
	}
}
