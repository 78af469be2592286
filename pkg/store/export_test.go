package store

// SetMaxAttempts changes how often a write is attempted, and returns what restores it.
func SetMaxAttempts(n int) (restore func()) {
	before := maxAttempts
	maxAttempts = n
	return func() { maxAttempts = before }
}

// SetMaxListKeys changes how many keys a list compares, and returns what restores it.
func SetMaxListKeys(n int) (restore func()) {
	before := maxListKeys
	maxListKeys = n
	return func() { maxListKeys = before }
}
