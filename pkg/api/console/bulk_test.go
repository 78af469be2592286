package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
)

// startRuns starts a console with tasks, whose runs are those of a test.
func startRuns(t *testing.T, path string) (*library, *runs) {
	t.Helper()
	o := stores(t, nil, store.Options{Name: "Tasks", Private: []string{"note"}}, store.Options{Name: "Others"})
	v := &runs{}
	f := start(t, console.Options{Objects: o, Operations: []console.Operation{{Path: path, Kind: "run", Runs: v}}})
	return &library{set: o.Set, fixture: f}, v
}

func TestABulkChangeIsAskedForAndStarted(t *testing.T) {
	t.Parallel()
	l, v := startRuns(t, console.BulkPath)
	for i := range 12 {
		l.save("Tasks", fmt.Sprintf("t%02d", i), `{"n":1,"note":"secret"}`)
	}
	shows(t, is(t, l.get(l.Admin, tasks), http.StatusOK), `form="bulk" name="uuid" value="t00"`, `id="bulk"`)
	chosen := url.Values{"action": {"set"}, "field": {"n"}, "value": {string(object.AppendString(nil, hostile))}}
	for i := range 7 {
		chosen.Add("uuid", fmt.Sprintf("t%02d", i))
	}
	r := is(t, l.post(l.Admin, tasks+"/bulk", chosen.Encode()), http.StatusOK)
	if shows(t, r, "7 objects are chosen.", `name="uuid" value="t06"`, "t04</a>"); strings.Contains(r.Text, hostile) ||
		strings.Contains(r.Text, "secret") || strings.Contains(r.Text, "t05</a>") {
		t.Error(r.Text)
	}
	if len(v.started) != 0 {
		t.Error("the question has started a run")
	}
	leads(t, l.post(l.Admin, tasks+"/bulk/run", chosen.Encode()), tasks+"/bulk")
	ada, err := l.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	l.Must(err)
	if len(v.started) != 1 || !strings.Contains(v.started[0], "actor="+ada.UUID) ||
		!strings.Contains(v.started[0], "objects=t00%0At01") || !strings.Contains(v.started[0], "store=Tasks") {
		t.Error(v.started)
	}
	// The actor is the admin, whatever the form says.
	chosen.Set("actor", "bob")
	chosen.Set("store", "Others")
	leads(t, l.post(l.Admin, tasks+"/bulk/run", chosen.Encode()), tasks+"/bulk")
	if strings.Contains(v.started[1], "bob") || strings.Contains(v.started[1], "Others") {
		t.Error(v.started)
	}
	many := url.Values{"action": {"delete"}}
	for range 501 {
		many.Add("uuid", "t00")
	}
	is(t, l.post(l.Admin, tasks+"/bulk", many.Encode()), http.StatusBadRequest)
	is(t, l.post(l.Admin, tasks+"/bulk", "action=delete"), http.StatusBadRequest)
	is(t, l.post(l.Admin, tasks+"/bulk", "action=set&field=note&value=1&all=true"), http.StatusBadRequest)
	is(t, l.post(l.Admin, tasks+"/bulk", "action=set&field=n&all=true&value=%22"+strings.Repeat("x", 70_000)+"%22"),
		http.StatusRequestEntityTooLarge)
	is(t, l.post(l.User, tasks+"/bulk/run", chosen.Encode()), http.StatusForbidden)
	is(t, l.post(l.Admin, tasks+"/bulk/run", chosen.Encode(), "Origin", "https://evil.example"), http.StatusForbidden)
	leads(t, l.post(l.Admin, tasks+"/bulk/stop", ""), tasks+"/bulk")
	if v.stopped != 1 || len(v.started) != 2 {
		t.Errorf("%d stops, %v", v.stopped, v.started)
	}
}

func TestABulkChangeIsFollowed(t *testing.T) {
	t.Parallel()
	l, v := startRuns(t, console.BulkPath)
	shows(t, is(t, l.get(l.Admin, tasks+"/bulk"), http.StatusOK), "There was no run yet.")
	of := bulk.Request{Store: "Tasks", Action: bulk.Set, Field: "n", All: true, Filter: hostile}
	report := bulk.Report{Store: "Tasks", Total: 10_000, Changed: 4999, Refused: 1,
		Refusals: []bulk.Refusal{{UUID: "a/b", Reason: hostile + turned}}}
	v.last = &console.Run{By: hostile, Began: time.Now(), In: of, Progress: report}
	r := is(t, l.get(l.Admin, tasks+"/bulk", "Hx-Request", "true"), http.StatusOK)
	if shows(t, r, `<progress value="5000" max="10000"`, `hx-trigger="every 1s"`,
		"4,999", `action="/console/objects/Tasks/bulk/stop"`,
		"a%2Fb"); strings.Contains(r.Text, hostile) || strings.ContainsAny(r.Text, "\u202e\u2066") {
		t.Error(r.Text)
	}
	v.last.Ended, v.last.Err = time.Now(), errs.New(errs.Unavailable, "the process that ran it has ended")
	r = is(t, l.get(l.Admin, tasks+"/bulk"), http.StatusOK)
	if shows(t, r, "Interrupted after 5,000 of 10,000 objects."); strings.Contains(r.Text, "hx-get") {
		t.Error(r.Text)
	}
	// Nobody knows what a process that was killed has done since it wrote this.
	v.last.Lost = true
	r = is(t, l.get(l.Admin, tasks+"/bulk"), http.StatusOK)
	if shows(t, r, "At least 5,000 of 10,000 objects were handled"); strings.Contains(r.Text, "Interrupted after") {
		t.Error(r.Text)
	}
	// A field that has become private is not named.
	of.Field = "note"
	v.last.In = of
	if r = is(t, l.get(l.Admin, tasks+"/bulk"), http.StatusOK); strings.Contains(r.Text, "note") {
		t.Error(r.Text)
	}
	if r = is(t, l.get(l.Admin, "/console/objects/Others/bulk"), http.StatusOK); strings.Contains(r.Text, "4,999") {
		t.Error(r.Text)
	}
}
