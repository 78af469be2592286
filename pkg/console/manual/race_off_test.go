//go:build !race

package manual_test

// raced is 1 without the race detector.
const raced = 1
