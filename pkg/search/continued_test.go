package search_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/search"
	"belfry/test/kit"
)

// pages is how many pages of 32 objects a build reads in these tests.
const pages = 5

// many saves objects of so many pages.
func (p *place) many() {
	p.Helper()
	for i := range pages * 32 {
		p.save(fmt.Sprintf("o%03d", i), `{"title":"one"}`)
	}
	kit.WaitFor(p.T, "the events", func() bool { return p.relay.Stats().Events == 0 })
}

// during stops the process before a build reads a page, and calls a function in between.
func (p *place) during(page int64, do func()) {
	p.Helper()
	reached, resume := make(chan struct{}), make(chan struct{})
	p.scans.Store(0)
	p.onScan = func(n int64) {
		if n == page {
			close(reached)
			<-resume
		}
	}
	p.start()
	<-reached
	do()
	close(resume)
}

// stopBefore stops the process before a build reads a page.
func (p *place) stopBefore(page int64) {
	p.Helper()
	closed := make(chan struct{})
	p.during(page, func() {
		go func() { p.service.Close(); close(closed) }()
		kit.WaitFor(p.T, "the stop to begin", p.service.Closing)
	})
	<-closed
	p.service, p.onScan = nil, nil
	p.scans.Store(0)
}

// folders returns the names of the folders of indexes.
func (p *place) folders() (names []string) {
	p.Helper()
	entries, err := os.ReadDir(filepath.Join(p.folder, "Books"))
	if err != nil {
		p.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// right checks that the index is that of the store.
func (p *place) right(want int) {
	p.Helper()
	p.caughtUp()
	n := 0
	for i := range pages*32 + 2 {
		uuid := fmt.Sprintf("o%03d", i)
		_, err := p.store.Get(p.Context(), uuid)
		found := p.find(uuid)
		if (err == nil) != (found == uuid) {
			p.Errorf("%s: %v, found %q", uuid, err, found)
		}
		if found != "" {
			n++
		}
	}
	if n != want {
		p.Errorf("%d objects are found, expected %d", n, want)
	}
	if f := p.folders(); len(f) != 1 {
		p.Errorf("the folders %v are left", f)
	}
}

// A process is killed before each of the pages that a build reads. What the disk has of the index then is continued,
// while objects before and after the place have changed, and others were deleted and created.
func TestABuildContinuesAfterACrash(t *testing.T) {
	search.WriteEach(t)
	for page := int64(1); page <= pages; page++ {
		t.Run(fmt.Sprint("page ", page), func(t *testing.T) {
			p := newPlace(t, search.Settings{Fields: []string{"title", "n"}})
			for i := range pages * 32 {
				p.save(fmt.Sprintf("o%03d", i), fmt.Sprintf(`{"title":"one","n":"o%03d"}`, i))
			}
			kit.WaitFor(t, "the events", func() bool { return p.relay.Stats().Events == 0 })
			crashed := t.TempDir()
			p.during(page, func() {
				p.copied(crashed, (page-1)*32)
				p.update("o001", `{"title":"two"}`)
				p.update("o150", `{"title":"two"}`)
				p.remove("o002")
				p.remove("o151")
				p.save("o160", `{"title":"two","n":"o160"}`)
			})
			p.stop()
			p.folder = crashed
			p.onScan = nil
			p.remove("o003")
			p.scans.Store(0)
			p.start()
			p.caughtUp()
			if n, want := p.scans.Load(), pages-(page-1); n != want {
				t.Errorf("%d pages were read, expected %d", n, want)
			}
			p.right(pages*32 + 1 - 3)
			if got := p.find("two"); got != "o001 o150 o160" {
				t.Errorf("changed meanwhile: %q", got)
			}
		})
	}
}

// A stop, and a backend that is unavailable, leave a place, from which the build continues.
func TestABuildContinuesAfterAStop(t *testing.T) {
	search.WriteEach(t)
	p := newPlace(t, search.Settings{Fields: []string{"title"}})
	p.many()
	p.stopBefore(4)
	p.failures.Store(1)
	p.start()
	p.caughtUp()
	if n := p.scans.Load(); n != 3 { // the fourth page, once more, and the fifth
		t.Errorf("%d pages were read", n)
	}
	st := p.service.Status()[0]
	if st.Objects != pages*32 || len(p.folders()) != 1 {
		t.Errorf("%d objects are in the index; folders %v", st.Objects, p.folders())
	}
	if st.Done != pages*32 || st.Total != pages*32 || !st.Filled || st.Running || st.Began.IsZero() {
		t.Errorf("%+v", st)
	}
}

// What was built with other settings, or follows another log, is of no use.
func TestABuildThatCannotContinueBeginsAgain(t *testing.T) {
	search.WriteEach(t)
	for name, change := range map[string]func(p *place) error{
		"other settings": func(p *place) error { p.settings.Language = "en"; return nil },
		"another log": func(p *place) error {
			if err := p.bus.JetStream().DeleteStream(p.Context(), bus.StreamEvents); err != nil {
				return err
			}
			_, err := bus.SetupStreams(p.Context(), p.bus, bus.Limits{}, 1, false)
			return err
		},
		"events that have left the log": func(p *place) error {
			p.update("o001", `{"title":"two"}`)
			kit.WaitFor(p.T, "the events", func() bool { return p.relay.Stats().Events == 0 })
			s, err := p.bus.JetStream().Stream(p.Context(), bus.StreamEvents)
			if err == nil {
				err = s.Purge(p.Context())
			}
			return err
		},
		"another event at the position": func(p *place) error {
			search.BuildFromAnotherEvent(p.T, filepath.Join(p.folder, "Books", "1"))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, search.Settings{Fields: []string{"title"}})
			p.many()
			p.stopBefore(4)
			if n := len(p.folders()); n != 1 {
				t.Fatalf("%d folders", n)
			}
			if err := change(p); err != nil {
				t.Fatal(err)
			}
			p.start()
			p.caughtUp()
			if n := p.scans.Load(); n != pages {
				t.Errorf("%d pages were read, expected %d", n, pages)
			}
			if n := len(p.folders()); n != 1 {
				t.Errorf("%d folders are left", n)
			}
		})
	}
}

// copied copies the folder of the indexes as a crash would leave it, once that has the place after so many objects.
func (p *place) copied(folder string, objects int64) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		if err := os.CopyFS(folder, os.DirFS(p.folder)); err != nil {
			return err
		}
		if done := search.BuildDone(filepath.Join(folder, "Books", "1")); done != objects {
			return fmt.Errorf("the place on disk is after %d objects, not %d", done, objects)
		}
		return nil
	})
}
