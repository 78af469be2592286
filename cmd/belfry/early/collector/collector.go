// Package collector delays the garbage collector while packages are initialized: what they allocate then stays, and
// going through it several times took half of the time.
package collector

import (
	"os"
	_ "unsafe" // of go:linkname
)

// firstPercent is the GOGC by which the first collection begins at 16 MB, twice of what packages allocate. `belfry
// serve` then sets its own, and `belfry health`, which is run every few seconds, ends before.
const firstPercent = 400

// setPercent is debug.SetGCPercent. Go would initialize this package after half of all others if it imported debug.
//
//go:linkname setPercent runtime/debug.setGCPercent
func setPercent(percent int32) int32

var _ = delay()

// delay reports whether the collector is delayed.
func delay() bool {
	if len(os.Args) < 2 || os.Args[1] != "serve" && os.Args[1] != "health" || os.Getenv("GOGC") != "" {
		return false
	}
	setPercent(firstPercent)
	return true
}
