// Package bulk changes, deletes and loads many objects of a store for an admin: each by itself, as the admin could one
// after the other. An object that is refused is reported with the reason, and the run continues.
//
// A run is not atomic. One that ends early leaves what it has done, and its last report says how much that is.
package bulk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

const (
	maxListed   = 100 // refusals that a report lists
	maxReason   = 300 // bytes
	maxFields   = 5   // violations of one object
	writers     = 8   // objects in progress
	reportEvery = 200 * time.Millisecond
	checkEvery  = time.Second // of whether the run may continue
	attempts    = 8           // at an object while the stores are unavailable
)

// Report is what a run has done so far, and at its end.
type Report struct {
	Store    string    `json:"store"`
	Total    int64     `json:"total"`             // objects that are to be handled; 0 if that is not known
	Created  int64     `json:"created,omitempty"` // by an import
	Changed  int64     `json:"changed,omitempty"`
	Deleted  int64     `json:"deleted,omitempty"`
	Same     int64     `json:"same,omitempty"`    // there was nothing to change
	Skipped  int64     `json:"skipped,omitempty"` // existed, and an import leaves these
	Gone     int64     `json:"gone,omitempty"`    // deleted since
	Refused  int64     `json:"refused,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"` // the first
	More     bool      `json:"more,omitempty"`     // more objects match than a run handles
}

// Refusal is an object that a run did not change.
type Refusal struct {
	UUID   string `json:"uuid,omitempty"`
	Line   int64  `json:"line,omitempty"`   // of an import
	Column string `json:"column,omitempty"` // of its file
	Reason string `json:"reason"`
}

// Handled is how many objects are done with.
func (r Report) Handled() int64 {
	return r.Created + r.Changed + r.Deleted + r.Same + r.Skipped + r.Gone + r.Refused
}

// Unlisted is how many refusals the report only counts.
func (r Report) Unlisted() int64 { return r.Refused - int64(len(r.Refusals)) }

// outcome is what has become of an object.
type outcome int

const (
	created outcome = iota
	changed
	deleted
	same
	skipped
	gone
	later // it is not done with yet
)

// Host is where a run happens.
type Host struct {
	Log    *slog.Logger
	Report func(Report)                    // is called with each progress, and at the end
	Refuse func(Refusal)                   // is called with each object that is refused; nil: none is needed
	May    func(ctx context.Context) error // returns why the run must not continue
}

// tally collects a report. It is safe for concurrent use.
type tally struct {
	host    Host
	columns map[string]string // of the file of an import, by the fields of the objects

	mu       sync.Mutex
	now      Report
	reported time.Time
	checked  time.Time
}

// may reports at intervals whether the run may continue.
func (t *tally) may(ctx context.Context) error {
	t.mu.Lock()
	due := time.Since(t.checked) >= checkEvery
	if due {
		t.checked = time.Now()
	}
	t.mu.Unlock()
	if !due || t.host.May == nil {
		return ctx.Err()
	}
	return errors.Join(ctx.Err(), t.host.May(ctx))
}

// add counts an object.
func (t *tally) add(what outcome) {
	if what == later {
		return
	}
	t.change(func(r *Report) {
		*[...]*int64{&r.Created, &r.Changed, &r.Deleted, &r.Same, &r.Skipped, &r.Gone}[what]++
	})
}

// refuse counts an object that was refused.
func (t *tally) refuse(of Refusal) {
	of.Reason = httpkit.Truncate(of.Reason, maxReason)
	t.change(func(r *Report) {
		if t.host.Refuse != nil {
			t.host.Refuse(of)
		}
		if r.Refused++; len(r.Refusals) < maxListed {
			r.Refusals = append(slices.Clone(r.Refusals), of)
		}
	})
}

func (t *tally) change(with func(*Report)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	with(&t.now)
	if time.Since(t.reported) >= reportEvery {
		t.reported = time.Now()
		t.host.Report(t.now)
	}
}

// end reports the last state, and returns it.
func (t *tally) end() *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.now
	t.host.Report(last)
	return &last
}

// attempt does something with an object, again while the stores are unavailable, and counts what has become of it. It
// returns an error only if the run can't continue.
func (t *tally) attempt(ctx context.Context, of Refusal, do func() (outcome, error)) error {
	retry := backoff.New(100*time.Millisecond, 5*time.Second)
	for {
		what, err := do()
		kind := errs.KindOf(err)
		switch {
		case err == nil:
			t.add(what)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case kind == errs.NotFound:
			t.add(gone)
			return nil
		case kind == errs.Unavailable || kind == errs.Limited:
			if retry.Failed() >= attempts || retry.Wait(ctx) != nil {
				return err
			}
			continue
		case kind == errs.Internal:
			t.host.Log.ErrorContext(ctx, "an object of a bulk run has failed", "uuid", of.UUID, "error", err)
		}
		of.Column, of.Reason = t.column(err), reason(err)
		t.refuse(of)
		return nil
	}
}

// column returns the column of a file that the first violation is about; "" for none.
func (t *tally) column(err error) string {
	var e *errs.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return ""
	}
	field, _, _ := strings.Cut(strings.TrimPrefix(e.Fields[0].Pointer, "/"), "/")
	return t.columns[object.UnescapeToken(field)]
}

// reason is the message of an error for people.
func reason(err error) string {
	var e *errs.Error
	if errs.KindOf(err) == errs.Internal || !errors.As(err, &e) {
		return "the server failed; its log has the cause"
	}
	text := e.Message
	for i, f := range e.Fields {
		if i == maxFields {
			return text + fmt.Sprintf("; and %d more", len(e.Fields)-i)
		}
		text += "; " + f.String()
	}
	return text
}
