//go:build !race

package app

// raced is how many times what is allocated may be where the race detector is built in.
const raced = 1
