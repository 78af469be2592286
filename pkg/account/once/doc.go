// Package once handles secrets that are valid once but may be sent twice: codes, tokens of mails, flows, challenges.
//
//	valid ── used up, atomically ──► in progress ──┬─ the act has succeeded ──► remembered for 10 minutes: a Repetition
//	                                               └─ the act has failed ─────► nothing to repeat
package once

import (
	"log/slog"

	"belfry/pkg/account/record"
)

// Uses remembers used secrets.
type Uses struct {
	DB      *record.Stores
	Log     *slog.Logger
	repeats chan struct{} // holds the repetitions that wait for a first use
}

// New makes Uses.
func New(db *record.Stores, log *slog.Logger) *Uses {
	return &Uses{DB: db, Log: log, repeats: make(chan struct{}, maxRepeatWaits)}
}
