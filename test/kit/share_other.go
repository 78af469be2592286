//go:build !linux

package kit

// share is what a process gets of a machine on which this can't be read: a quarter of a processor.
func share() float64 { return 0.25 }
