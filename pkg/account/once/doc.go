// Package once is about what is valid once and sent twice all the same.
package once

import (
	"log/slog"

	"belfry/pkg/account/record"
)

// Uses remembers what was used.
type Uses struct {
	DB      *record.Stores
	Log     *slog.Logger
	repeats chan struct{} // holds the repetitions that wait for a first use
}

// New makes Uses.
func New(db *record.Stores, log *slog.Logger) *Uses {
	return &Uses{DB: db, Log: log, repeats: make(chan struct{}, maxRepeatWaits)}
}
