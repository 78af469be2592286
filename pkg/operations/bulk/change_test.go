package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
)

// kept refuses a state of objects that are kept.
type kept struct{}

func (kept) Validate(_ context.Context, doc []byte) error {
	if state, _ := object.Text(object.Field(doc, "state")); state == "new" && object.Field(doc, "keep") != nil {
		return &errs.Error{Kind: errs.Invalid, Message: "the object does not fit the schema",
			Fields: []errs.Field{{Pointer: "/state", Message: "must stay"}}}
	}
	return nil
}

// open opens a store in a folder.
func open(t *testing.T) *store.Store {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	st, err := store.Open(t.Context(), backend, store.Options{Name: "Items", Schema: kept{},
		Private: []string{"secret"},
		Indexes: []query.Index{query.NewIndex([]string{"state"})}})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func save(t *testing.T, st *store.Store, uuid, text string) store.Stored {
	t.Helper()
	o, err := object.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := st.Save(t.Context(), o, uuid)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// admin is the context of the call of an admin.
func admin(t *testing.T) context.Context {
	actor := "ada"
	return store.WithCall(t.Context(), store.Call{Client: true, Trusted: true, Actor: &actor})
}

var quiet = slog.New(slog.DiscardHandler)

func host() bulk.Host { return bulk.Host{Log: quiet, Report: func(bulk.Report) {}} }

// Ten thousand objects are changed, but for one in the middle that is refused.
func TestOneRefusalStopsNoRun(t *testing.T) {
	t.Parallel()
	const n = 10_000
	st := open(t)
	var saves errgroup.Group // many at a time share a sync of the disk
	saves.SetLimit(200)
	for i := range n {
		saves.Go(func() error {
			o := object.Object{"state": []byte(`"old"`)}
			if i == n/2 {
				o["keep"] = []byte("true")
			}
			_, err := st.Save(t.Context(), o, fmt.Sprintf("o%05d", i))
			return err
		})
	}
	if err := saves.Wait(); err != nil {
		t.Fatal(err)
	}
	var last bulk.Report
	h := host()
	h.Report = func(r bulk.Report) {
		if r.Handled() < last.Handled() {
			t.Errorf("the progress goes from %d back to %d", last.Handled(), r.Handled())
		}
		last = r
	}
	report, err := bulk.Run(admin(t), st, bulk.Request{Store: "Items", Action: bulk.Set, Field: "state", Value: `"new"`,
		All: true, Filter: `state == "old"`}, nil, h)
	if err != nil {
		t.Fatal(err)
	}
	if report.Total != n || report.Changed != n-1 || report.Refused != 1 || last.Handled() != n {
		t.Errorf("%+v", report)
	}
	if len(report.Refusals) != 1 || report.Refusals[0].UUID != "o05000" ||
		!strings.Contains(report.Refusals[0].Reason, "must stay") {
		t.Errorf("%+v", report.Refusals)
	}
	left, err := st.List(t.Context(), store.ListOptions{Filter: `state == "old"`})
	if err != nil || len(left.Objects) != 1 || left.Objects[0].UUID != "o05000" {
		t.Errorf("%v %v", left.Objects, err)
	}
}

func TestEachObjectIsCounted(t *testing.T) {
	t.Parallel()
	st := open(t)
	save(t, st, "a", `{"state":"old","n":1}`)
	save(t, st, "b", `{"state":"new","n":1}`)
	save(t, st, "c", `{"state":"old","keep":1}`)
	save(t, st, "d", `{}`)
	for _, c := range []struct {
		of   bulk.Request
		want string
	}{
		{bulk.Request{Action: bulk.Set, Field: "state", Value: `"new"`, Objects: "a\nb\nc\nnone\na"},
			"changed 1, same 1, deleted 0, gone 1, refused 1 of 4"},
		{bulk.Request{Action: bulk.Remove, Field: "n", Objects: "a\nd"},
			"changed 1, same 1, deleted 0, gone 0, refused 0 of 2"},
		{bulk.Request{Action: bulk.Set, Field: "n", Value: `1.0`, Objects: "b"},
			"changed 1, same 0, deleted 0, gone 0, refused 0 of 1"},
		{bulk.Request{Action: bulk.Delete, Objects: "a\nb\nnone"},
			"changed 0, same 0, deleted 2, gone 1, refused 0 of 3"},
		{bulk.Request{Action: bulk.Delete, All: true, Filter: `state == "old"`},
			"changed 0, same 0, deleted 1, gone 0, refused 0 of 1"},
	} {
		r, err := bulk.Run(admin(t), st, c.of, nil, host())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("changed %d, same %d, deleted %d, gone %d, refused %d of %d",
			r.Changed, r.Same, r.Deleted,
			r.Gone, r.Refused, r.Total); got != c.want {
			t.Errorf("%+v: %s, want %s", c.of, got, c.want)
		}
	}
}

func TestRequestsThatCannotBe(t *testing.T) {
	t.Parallel()
	st := open(t)
	for _, q := range []bulk.Request{
		{Action: "", Objects: "a"}, {Action: bulk.Set, Objects: "a", Value: "1"},
		{Action: bulk.Set, Objects: "a", Field: "n"},
		{Action: bulk.Set, Objects: "a", Field: "n", Value: `1,"secret":2`},
		{Action: bulk.Set, Objects: "a", Field: "secret", Value: "1"},
		{Action: bulk.Set, Objects: "a", Field: "_x", Value: "1"},
		{Action: bulk.Set, Objects: "a", Field: "uuid", Value: `"x"`},
		{Action: bulk.Remove, Objects: "a", Field: "created"}, {Action: bulk.Delete},
		{Action: bulk.Delete, Objects: "a/b"},
		{Action: bulk.Delete, All: true, Filter: "nonsense ("}, {Action: bulk.Delete, All: true, Filter: "n == 1"},
	} {
		if _, err := bulk.Run(admin(t), st, q, nil, host()); errs.KindOf(err) != errs.Invalid || err == nil {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// What others change between the search and the change is left alone: it may no longer match.
func TestObjectsThatOthersChangeAreRefused(t *testing.T) {
	t.Parallel()
	st := open(t)
	save(t, st, "a", `{"state":"old"}`)
	for _, action := range []string{bulk.Delete, bulk.Set} {
		h := host()
		var began atomic.Bool
		h.Report = func(r bulk.Report) {
			if r.Total == 0 || !began.CompareAndSwap(false, true) {
				return
			}
			// After the search, and before the first change.
			_, err := st.Update(t.Context(), object.Object{"n": []byte("1")}, store.UpdateOptions{UUID: "a"})
			if err != nil {
				t.Error(err)
			}
		}
		r, err := bulk.Run(admin(t), st, bulk.Request{Action: action, Field: "n", Value: "2", All: true,
			Filter: `state == "old"`}, nil, h)
		if err != nil || r.Refused != 1 || !strings.Contains(r.Refusals[0].Reason, "somebody changed it") {
			t.Errorf("%s: %+v %v", action, r, err)
		}
	}
}

func TestARunEndsWithItsRights(t *testing.T) {
	t.Parallel()
	st := open(t)
	for i := range 300 {
		save(t, st, fmt.Sprintf("o%03d", i), `{}`)
	}
	h := host()
	h.May = func(context.Context) error { return errs.New(errs.Canceled, "no longer an admin") }
	r, err := bulk.Run(admin(t), st, bulk.Request{Action: bulk.Delete, All: true}, nil, h)
	if errs.KindOf(err) != errs.Canceled || r.Deleted != 0 {
		t.Errorf("%+v %v", r, err)
	}
	ctx, cancel := context.WithCancel(admin(t))
	h = host()
	guard := func(_ context.Context, o store.Stored) error {
		if o.UUID == "o000" {
			cancel()
		}
		return nil
	}
	if r, err = bulk.Run(ctx, st, bulk.Request{Action: bulk.Delete, All: true}, guard, h); !errors.Is(err,
		context.Canceled) || r.Handled() >= 300 {
		t.Errorf("%+v %v", r, err)
	}
	// The report says what it has done.
	left, err := st.List(t.Context(), store.ListOptions{Limit: 500})
	if err != nil || len(left.Objects) != int(300-r.Deleted) {
		t.Errorf("%d are left, %+v, %v", len(left.Objects), r, err)
	}
}

func TestTheGuardOfDeletions(t *testing.T) {
	t.Parallel()
	st := open(t)
	for i := range 200 {
		save(t, st, fmt.Sprintf("o%03d", i), `{"secret":1}`)
	}
	guard := func(_ context.Context, o store.Stored) error {
		if object.Field(o.Body, "secret") == nil {
			t.Error("the guard sees less than all fields")
		}
		return errs.New(errs.Conflict, "this would delete you %s", strings.Repeat("x", 1000))
	}
	r, err := bulk.Run(admin(t), st, bulk.Request{Action: bulk.Delete, All: true}, guard, host())
	if err != nil || r.Refused != 200 || len(r.Refusals) != 100 || r.Unlisted() != 100 ||
		slices.ContainsFunc(r.Refusals, func(f bulk.Refusal) bool { return len(f.Reason) > 310 }) {
		t.Errorf("%+v %v", r, err)
	}
}

// An object that others name by a reference with restrict is refused, also among many.
func TestRestrictingReferencesHoldForBulkDeletions(t *testing.T) {
	t.Parallel()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	st, err := store.Open(t.Context(), backend, store.Options{Name: "Items", References: []store.Reference{
		{Field: "parent", Target: "Items", Indexed: true, OnDelete: store.OnDeleteRestrict}}})
	if err != nil {
		t.Fatal(err)
	}
	store.NewSet([]*store.Store{st}, nil)
	save(t, st, "a", `{}`)
	save(t, st, "b", `{"parent":"a"}`)
	save(t, st, "c", `{}`)
	remove := func(uuids string) string {
		t.Helper()
		r, err := bulk.Run(admin(t), st, bulk.Request{Store: "Items", Action: bulk.Delete, Objects: uuids}, nil, host())
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("deleted %d, refused %d", r.Deleted, r.Refused)
		for _, f := range r.Refusals {
			text += ": " + f.UUID + " " + f.Reason
		}
		return text
	}
	if got := remove("a\nc"); !strings.HasPrefix(got, "deleted 1, refused 1: a ") {
		t.Error(got)
	}
	if got := remove("b"); got != "deleted 1, refused 0" {
		t.Error(got)
	}
	if got := remove("a"); got != "deleted 1, refused 0" {
		t.Error(got)
	}
}
