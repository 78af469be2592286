package console

import "time"

// Backups are what the view System shows of backups.
type Backups struct {
	Place   string    // where they are; "": no place is configured
	Next    time.Time // when the schedule makes the next one; zero: there is no schedule
	Running string    // the process that makes one now, and since when; "" for none
	Error   string    // why the state can't be read; "" if it can

	Recent []Backup // the newest first
}

// Backup is a backup that was made, or has failed.
type Backup struct {
	ID           string // "": it has failed
	Began, Ended time.Time
	Scheduled    bool // by the schedule, not by a command
	Size, Added  int64
	Problems     int    // how much is damaged, and not in it
	Error        string // why it has failed
}

// Took returns how long it took.
func (b Backup) Took() time.Duration { return b.Ended.Sub(b.Began) }

// Last returns the time at which the latest existing backup began; zero if no backup exists.
func (b Backups) Last() time.Time {
	for _, one := range b.Recent {
		if one.ID != "" {
			return one.Began
		}
	}
	return time.Time{}
}
