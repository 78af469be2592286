package objects

import "time"

// SetRenewInterval changes how long what a user may do is taken for granted in a stream, and returns what restores it.
func SetRenewInterval(d time.Duration) (restore func()) {
	before := renewInterval
	renewInterval = d
	return func() { renewInterval = before }
}
