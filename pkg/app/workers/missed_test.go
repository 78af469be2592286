package workers

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"belfry/config"
	"belfry/listeners/mail"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
)

// A listener that a reload adds is watched by processes that may not list all consumers, too.
func TestTheWatchKnowsListenersOfTheCurrentConfiguration(t *testing.T) {
	generation := func(stores string) *serving.Generation {
		t.Helper()
		c, err := config.Parse(filepath.Join(t.TempDir(), "belfry.yaml"), []byte(stores), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.CompileFor(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return serving.NewGeneration(c, p)
	}
	served := serving.NewCurrent(generation("stores: {Authors: {}}\n"))
	w := &LogWatch{Served: served}
	if names := w.builtIn(); slices.Contains(names, mail.Name) {
		t.Errorf("without mails: %q", names)
	}
	served.Replace(generation("authentication: {providers: {email: {from: a@example.com}}}\n"))
	if names := w.builtIn(); !slices.Contains(names, mail.Name) {
		t.Errorf("with mails: %q", names)
	}
}
