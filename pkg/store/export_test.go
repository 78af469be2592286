package store

// SetMaxAttempts changes how often a write is attempted, and returns what restores it.
func SetMaxAttempts(n int) (restore func()) {
	before := maxAttempts
	maxAttempts = n
	return func() { maxAttempts = before }
}
