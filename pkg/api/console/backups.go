package console

import (
	"time"

	"belfry/pkg/operations/backup"
)

// Backups are what the view System shows of backups.
type Backups struct {
	Place   string    // where they are; "": no place is configured
	Next    time.Time // when the schedule makes the next one; zero: there is no schedule
	Running string    // the process that makes one now, and since when; "" for none
	Error   string    // why the state can't be read; "" if it can

	Recent []backup.Attempt // the newest first
}

// Last returns the time at which the latest existing backup began; zero if no backup exists.
func (b Backups) Last() time.Time {
	for _, one := range b.Recent {
		if one.ID != "" {
			return one.Began
		}
	}
	return time.Time{}
}
