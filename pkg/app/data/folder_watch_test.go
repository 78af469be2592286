package data

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// broken is a backend whose folder has failed.
type broken struct{ driver.Backend }

func (broken) Ping(context.Context) error {
	return errs.New(errs.Unavailable, "the store's folder can't be written any more")
}

// A folder that has failed does not come back in this process, so the process
// asks to be ended.
func TestAFailedFolderEndsBelfry(t *testing.T) {
	c, err := config.Parse("belfry.yaml", []byte("stores: {Books: {}}"),
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	g, ends := serving.NewGeneration(c, nil), serving.NewLifetime()
	g.Backends = map[string]driver.Backend{"default": broken{}}
	watch := (&FolderWatch{Served: serving.NewCurrent(g), Fail: ends.Fail}).Part()
	if err := watch.Start(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Stop(context.Background()) }()
	select {
	case err := <-ends.Failed:
		if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), "backend default has failed") {
			t.Error(err)
		}
	case <-time.After(kit.Limit):
		t.Fatal("it continues")
	}
}
