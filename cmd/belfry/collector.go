package main

import "os"

// roomy is how many bytes more the heap may grow before the collector runs.
const roomy = 128 << 20

// ballast is memory that is never touched, so it takes no room in the machine.
// The collector runs when the heap has doubled, which with little in memory is
// many times a second: with the ballast it runs a few times, and belfry takes
// up to so much more while it is busy. With much in memory it is of little weight.
// Who sets the collector's own variables gets what they say.
func ballast() []byte {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return nil
		}
	}
	return make([]byte, roomy)
}
