package console

import (
	"strings"
	"time"

	"belfry/pkg/errs"
)

// Run is a run in the background that an admin has started. One of each kind is in progress at a time in all processes that share
// the stores.
type Run struct {
	By           string    // who started it
	Request      string    // the id of the request that started it, under which the log has the cause of Err
	Began, Ended time.Time // Ended is zero while it is in progress
	Err          error
}

// Running reports whether the run is in progress.
func (r *Run) Running() bool { return r.Ended.IsZero() }

// Took is the duration of a run, until now if it is in progress.
func (r *Run) Took() time.Duration {
	if r.Running() {
		return time.Since(r.Began).Round(time.Second)
	}
	return r.Ended.Sub(r.Began).Round(time.Millisecond)
}

// problem describes Err and the remaining effects of the run for people; "" without an error.
func (r *Run) problem(stays string) string {
	if r.Err == nil {
		return ""
	}
	text := "The server failed during the run."
	message, _ := messageOf(r.Err)
	switch errs.KindOf(r.Err) {
	case errs.Canceled:
		return strings.TrimSuffix(message, ".") + "." + stays
	case errs.Internal:
	default:
		text = "The run ended early: " + strings.TrimSuffix(message, ".") + "."
	}
	text += stays
	if r.Request != "" {
		text += " The log has the cause under the request " + r.Request + "."
	}
	return text + " Try again."
}
