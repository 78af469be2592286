package search_test

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// unpack unpacks an index that the version before this one has made of two texts.
func unpack(t *testing.T, name, to string) {
	t.Helper()
	file, err := os.Open("testdata/form2.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(packed)
	for {
		header, err := files.Next()
		if err == io.EOF { //nolint:errorlint // as documented
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		inside, ok := strings.CutPrefix(header.Name, name+"/")
		if !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(files)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, inside)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, inside), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnIndexOfTheVersionBeforeAnswersUntilAnotherIsBuilt: also after crashes during the build, and with what is
// written meanwhile.
func TestAnIndexOfTheVersionBeforeAnswersUntilAnotherIsBuilt(t *testing.T) {
	bothWays(t, func(t *testing.T, change ...func(*store.Options)) {
		p := newPlace(t, search.Settings{Fields: []string{"title"}, Language: "en"}, change...)
		p.save("one", `{"title":"Whales at the seaside","user":"ada"}`)
		p.save("two", `{"title":"Müller-Straße, white whales","user":"bob"}`)
		for i := range 40 { // more than a page
			p.save(fmt.Sprintf("o%02d", i), `{"title":"other","user":"ada"}`)
		}
		kit.WaitFor(t, "the events", func() bool { return p.relay.Stats().Events == 0 })
		name, folder := "shared", filepath.Join(p.folder, "Books")
		if len(change) > 0 {
			name = "own"
		}
		unpack(t, name, folder)
		log, err := eventlog.GetState(t.Context(), p.bus.JetStream())
		if err != nil {
			t.Fatal(err)
		}
		search.FollowFrom(t, filepath.Join(folder, "1"), log)
		finds := func(all map[string]string) {
			t.Helper()
			for q, want := range all {
				if got := p.find(q); got != want {
					t.Errorf("%s finds %q, expected %q", q, got, want)
				}
			}
		}
		p.failures.Store(math.MaxInt64) // each build fails
		p.start()
		finds(map[string]string{"whale": "one two", "WHALES": "one two", `"white whale"`: "two", "müller-straße": "two",
			"sea*": "one", "whale -white": "one", "whale -sea*": "two", "muller": ""})
		p.save("three", `{"title":"a whale","user":"ada"}`)
		p.remove("one")
		kit.WaitFor(t, "the index to follow the log", func() bool { return p.find("whale") == "three two" })
		p.stop()
		// Of a build that a crash has ended.
		if err := os.MkdirAll(filepath.Join(folder, "2", "store"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.start()
		finds(map[string]string{"whale": "three two"})
		p.failures.Store(0)
		p.caughtUp()
		finds(map[string]string{"whale": "three two", "muller": "two", "Stras*": "two"})
		kit.WaitFor(t, "the former index to be removed", func() bool {
			folders, err := os.ReadDir(folder)
			return err == nil && len(folders) == 1
		})
	})
}

// TestAnIndexOfOtherSettingsAnswersUntilAnotherIsBuilt, where it can.
func TestAnIndexOfOtherSettingsAnswersUntilAnotherIsBuilt(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}, Language: "de"})
	for i := range 40 {
		p.save(fmt.Sprintf("o%02d", i), `{"title":"other"}`)
	}
	p.save("one", `{"title":"whales"}`)
	p.start()
	p.caughtUp()
	p.stop()
	p.failures.Store(math.MaxInt64)
	p.settings.Language = "en"
	p.start()
	p.save("two", `{"title":"whales and whaling"}`)
	kit.WaitFor(t, "the index to follow the log", func() bool { return p.find("whales") == "one two" })
	if got := p.find("whaling"); got != "two" {
		t.Errorf("with the former language: %q", got)
	}
	p.failures.Store(0)
	p.caughtUp()
	if got := p.find("whaling"); !strings.Contains(got, "one") {
		t.Errorf("with the language: %q", got)
	}
}
