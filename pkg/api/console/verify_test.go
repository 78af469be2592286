package console_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
)

// runs are the runs of an operation, of which the test decides.
type runs struct {
	last    *console.Run
	started []string
	stopped int
}

func (r *runs) Last(context.Context) (*console.Run, error) { return r.last, nil }
func (r *runs) Stop(context.Context) error                 { r.stopped++; return nil }

func (r *runs) Start(_ context.Context, by, _ string, form url.Values) error {
	if r.last != nil && r.last.Running() {
		return errs.New(errs.Conflict, "a run is in progress already")
	}
	r.started = append(r.started, by+" "+form.Encode())
	return nil
}

// operation is an operation of commands in the console, with the runs of a test, where some stores have a schema.
func operation(of *command.Untyped, r console.Runs, schemas ...string) console.Operation {
	c := &config.Config{Stores: map[string]*config.Store{"Plain": {}}}
	for _, name := range schemas {
		c.Stores[name] = &config.Store{Schema: "schema.json"}
	}
	o := of.Job(&command.Host{Now: func() *command.Place { return &command.Place{Plan: &plan.Plan{Config: c}} }}).
		Operation
	o.Runs = r
	return o
}

func TestAVerificationIsRunShownAndRepaired(t *testing.T) {
	t.Parallel()
	v := &runs{}
	f := start(t, console.Options{Operations: []console.Operation{operation(command.Verify.Untyped(), v)}})
	ada, err := f.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	f.Must(err)
	first := is(t, f.get(f.Admin, "/console/verify"), http.StatusOK)
	if shows(t, first, `action="/console/verify"`); strings.Contains(first.Text, "Last run") ||
		strings.Contains(first.Text, "hx-trigger") {
		t.Error(first.Text)
	}
	leads(t, f.post(f.Admin, "/console/verify", "deep=true"), "/console/verify")

	v.last = &console.Run{
		By: ada.UUID, Began: time.Now(),
		In: command.VerifyRequest{}, Progress: verify.Progress{Reading: "Books in Authors.books", Objects: 12345},
	}
	shows(t, is(t, f.get(f.Admin, "/console/verify"), http.StatusOK), "Books in Authors.books", "12,345",
		`hx-trigger="every 1s"`, `action="/console/verify/stop"`)
	part := is(t, f.get(f.Admin, "/console/verify", "Hx-Request", "true"), http.StatusOK)
	if shows(t, part, "12,345", `id="state"`); strings.Contains(part.Text, "<html") {
		t.Error("htmx gets a whole page")
	}
	is(t, f.post(f.Admin, "/console/verify", ""), http.StatusConflict)
	leads(t, f.post(f.Admin, "/console/verify/stop", ""), "/console/verify")

	report := &verify.Report{Mappings: 2, More: 7}
	for range 300 {
		report.Differences = append(report.Differences, verify.Difference{Kind: verify.Missing, Source: "Books",
			UUID: "a/b", Target: "Authors", Holder: hostile, Array: "books"})
	}
	done := *v.last
	done.Ended, done.Out = time.Now(), &command.Report{Report: report}
	v.last = &done
	r := is(t, f.get(f.Admin, "/console/verify"), http.StatusOK)
	shows(t, r, "307 differences", "The first 200 of 307", "Verify again and repair",
		"/console/objects/Books/object/a%2Fb", `name="repair" value="true"`)
	if strings.Contains(r.Text, hostile) || strings.Contains(r.Text, "hx-trigger") {
		t.Error("a uuid is not escaped, or the page of a run that has ended asks for more")
	}
	leads(t, f.post(f.Admin, "/console/verify", "repair=true"), "/console/verify")
	if want := "ada@example.com deep=true,ada@example.com repair=true"; strings.Join(v.started, ",") != want ||
		v.stopped != 1 {
		t.Errorf("%v, stopped %d times", v.started, v.stopped)
	}
	done.Out = &command.Report{Report: &verify.Report{}}
	shows(t, is(t, f.get(f.Admin, "/console/verify"), http.StatusOK), "no differences")
	// What people are shown of an error has no internals; the log has them, under the request.
	done.Out, done.Request = nil, "r-17"
	for _, c := range []struct {
		err   error
		shows []string
	}{
		{errors.New("open /secret/folder: no such file"), []string{"The server failed", "r-17", "Try again"}},
		{errs.Wrap(errors.New("open /secret/folder"), errs.Unavailable, "the storage of files does not reply"),
			[]string{"ended early: the storage of files does not reply.", "r-17", "Its repairs are kept"}},
		{errs.New(errs.Canceled, "the run was stopped"), []string{"the run was stopped"}},
	} {
		done.Err, done.Stays = c.err, "Its repairs are kept."
		page := is(t, f.get(f.Admin, "/console/verify"), http.StatusOK)
		if shows(t, page, append(c.shows, "failed")...); strings.Contains(page.Text, "secret") {
			t.Errorf("%v: the page shows internals", c.err)
		}
	}
}

func TestOnlyAdminsVerify(t *testing.T) {
	t.Parallel()
	v := &runs{}
	f := start(t, console.Options{Operations: []console.Operation{operation(command.Verify.Untyped(), v)}})
	for _, path := range []string{"/console/verify", "/console/verify/stop"} {
		is(t, f.post("", path, ""), http.StatusSeeOther)
		is(t, f.post(f.User, path, ""), http.StatusForbidden)
		is(t, f.post(f.Admin, path, "", "Origin", "https://evil.example.org"), http.StatusForbidden)
	}
	is(t, f.get(f.User, "/console/verify"), http.StatusForbidden)
	if len(v.started)+v.stopped > 0 {
		t.Errorf("%v, %d", v.started, v.stopped)
	}
}
