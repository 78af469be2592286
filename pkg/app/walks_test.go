package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/pkg/walk"
	"belfry/test/kit"
)

// Whatever is derived from existing objects has its progress in the console, in the metrics and in the log.
func TestEachKindOfWalkShowsItsProgress(t *testing.T) {
	const head = `
listen: 127.0.0.1:0
bus: {listen: ""}
metrics: {listen: '127.0.0.1:0'}
stores:
`
	p := newPlace(t, head+`
  Authors: {expose: {}}
  Books: {expose: {}}
`)
	a := p.start()
	for i := range 3 {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, i), http.StatusCreated)
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","author":"a%d","title":"T%d"}`, i, i, i),
			http.StatusCreated)
	}
	p.stop(a)
	p.config = p.load(head + `
  Authors: {expose: {}, computed: {label: "uuid + '1'"}}
  Books:
    expose: {}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
    search: {fields: [title]}
    unique: [title]
`)
	a = p.start()
	complete := func() error {
		var all []error
		for _, s := range a.wiring.walks.Status() {
			if s.State() != "complete" {
				all = append(all, fmt.Errorf("%+v", s))
			}
		}
		return errors.Join(all...)
	}
	kit.WaitUntil(t, complete)
	if err := a.wiring.filling.Again(t.Context(), "a loss"); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, complete)
	text, shown := p.metrics(a), map[walk.Kind]map[string]walk.Status{}
	for _, s := range a.console().System.Walks() {
		if shown[s.Kind] == nil {
			shown[s.Kind] = map[string]walk.Status{}
		}
		shown[s.Kind][s.Name] = s
	}
	for kind, of := range map[walk.Kind]struct{ name, logged string }{
		walk.Mapping: {"Books in Authors.books",
			`msg="the arrays of a mapping are filled" mapping="Books in Authors.books" done=3`},
		walk.Computed: {"Authors", `msg="the computed properties of a store are filled" store=Authors done=3`},
		walk.Unique:   {"Books", `msg="the claims of unique values of a store are filled" store=Books done=3`},
		walk.Search:   {"Books", `msg="the search index is built" store=Books done=3`},
		walk.Cascade:  {"Books", `msg="the objects that cascades have left are deleted" store=Books done=3`},
		walk.Upgrade: {"keys of Books",
			`msg="the indexes of keys that are whole numbers are filled" store="keys of Books" done=3`},
	} {
		if s := shown[kind][of.name]; s.Done != 3 || s.Total != 3 || s.Began.IsZero() {
			t.Errorf("the console has %+v of %s", s, kind)
		}
		for metric, value := range map[string]int{"complete": 1, "done_objects": 3, "objects": 3, "failed_objects": 0} {
			if line := fmt.Sprintf("\nbelfry_walk_%s{kind=%q,name=%q} %d\n", metric, kind, of.name,
				value); !strings.Contains(text, line) {
				t.Errorf("the metrics lack %s", line)
			}
		}
		if !strings.Contains(p.logged.String(), of.logged) {
			t.Errorf("the log lacks %s:\n%s", of.logged, p.logged)
		}
	}
	p.stop(a)
}

// The rate is that of the configuration: from the start for all walks, and another one after a reload.
func TestAReloadChangesTheRateOfWalks(t *testing.T) {
	const config = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores: {Books: {expose: {}, search: {fields: [title]}}}
`
	p := newPlace(t, config)
	a := p.start()
	p.want(a, "POST", "/books", `{"uuid":"b","title":"T"}`, http.StatusCreated)
	p.stop(a)
	if err := os.RemoveAll(filepath.Join(p.config.Data, "search")); err != nil {
		t.Fatal(err)
	}
	p.config = p.load(config + "fillRate: 1\n")
	logged := len(p.logged.String())
	a, _ = p.reloadable()
	var took time.Duration
	kit.WaitUntil(t, func() (err error) {
		_, after, _ := strings.Cut(p.logged.String()[logged:], `msg="the search index is built"`)
		_, after, _ = strings.Cut(after, "after=")
		after, _, _ = strings.Cut(after, "\n")
		took, err = time.ParseDuration(after)
		return err
	})
	if took < time.Second {
		t.Errorf("an index is built in %s, at one object a second", took)
	}
	isLimited := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		return a.wiring.filling.Rate.Wait(ctx, 1_000_000) != nil
	}
	if !isLimited() {
		t.Error("walks have no rate")
	}
	p.reload(a, config+"fillRate: 0\n")
	// Once more where a busy machine has let the time pass.
	kit.WaitFor(t, "walks have no rate any more", func() bool { return !isLimited() })
	p.stop(a)
}
