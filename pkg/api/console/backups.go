package console

import (
	"time"

	"belfry/pkg/operations/backup"
)

// Backups are what the view System shows of backups.
type Backups struct {
	Place   string    // where they are; "": no place is configured
	Next    time.Time // when the schedule makes the next one; zero: there is no schedule
	Running string    // who makes one now, and since when; "" is nobody
	Error   string    // why the state can't be read; "" when it can

	Recent []backup.Attempt // the newest first
}

// Last returns when the latest backup that exists was begun; zero: there is none.
func (b Backups) Last() time.Time {
	for _, one := range b.Recent {
		if one.ID != "" {
			return one.Began
		}
	}
	return time.Time{}
}
