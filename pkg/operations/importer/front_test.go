package importer_test

import (
	"log/slog"
	"net/http"
	"testing"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/operations/importer"
	"belfry/pkg/store"
)

func TestMain(m *testing.M) {
	importer.Front = func(books, closed *store.Store) http.Handler {
		o := api.Options{Logger: slog.New(slog.DiscardHandler)}
		apitest.Expose(&o, books, config.Expose{URL: "/books"})
		apitest.Expose(&o, closed, config.Expose{URL: "/closed", Restrict: config.Restrict{Create: true}})
		return apitest.New(o)
	}
	m.Run()
}
