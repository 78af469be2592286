package routes

import (
	"maps"
	"slices"

	"belfry/pkg/api/files"
	"belfry/pkg/app/serving"
)

// fileOptions are the routes of binary services.
func fileOptions(g *serving.Generation, uploads *files.Memory) []files.Options {
	var all []files.Options
	for _, name := range slices.Sorted(maps.Keys(g.Binaries)) {
		b := g.Config.Binaries[name]
		mounted := files.Options{Service: g.Binaries[name], Memory: uploads}
		if b.S3 != nil {
			mounted.Presign = b.S3.Presign
		}
		all = append(all, mounted)
	}
	return all
}
