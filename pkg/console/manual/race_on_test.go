//go:build race

package manual_test

// raced is how many times slower the race detector makes a search.
const raced = 20
