package routes

import (
	"maps"
	"slices"

	"belfry/pkg/api/files"
	"belfry/pkg/api/objects"
	"belfry/pkg/app/serving"
	"belfry/pkg/store"
)

// objectOptions are the routes of the stores that clients may use.
func objectOptions(g *serving.Generation) []objects.Options {
	var all []objects.Options
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		e := g.Config.Stores[name].Expose
		if e == nil {
			continue
		}
		all = append(all, objects.Options{
			Store: g.Set.Store(name), URL: e.URL, List: e.List, Restrict: objects.Restrict(e.Restrict), Expand: expandable(g, g.Set.Store(name)),
		})
	}
	return all
}

// expandable returns the keys of a store's mappings that lead to one store of which clients may get objects, with that store.
func expandable(g *serving.Generation, s *store.Store) map[string]*store.Store {
	all := map[string]*store.Store{}
	for _, m := range s.Maps() {
		target := g.Set.Store(m.Target)
		if other, known := all[m.Key]; known && other != target {
			target = nil // it is not known in which one an object is
		}
		if e := g.Config.Stores[m.Target].Expose; e == nil || e.Restrict.Get {
			target = nil
		}
		all[m.Key] = target
	}
	maps.DeleteFunc(all, func(_ string, s *store.Store) bool { return s == nil })
	return all
}

// fileOptions are the routes of binary services.
func fileOptions(g *serving.Generation, uploads *files.Memory) []files.Options {
	var all []files.Options
	for _, name := range slices.Sorted(maps.Keys(g.Binaries)) {
		b := g.Config.Binaries[name]
		mounted := files.Options{Service: g.Binaries[name], Memory: uploads, URL: b.URL, Restrict: files.Restrict(b.Restrict)}
		if b.S3 != nil {
			mounted.Presign = b.S3.Presign
		}
		all = append(all, mounted)
	}
	return all
}
