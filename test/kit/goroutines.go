package kit

import (
	"runtime"
	"strings"
)

// Goroutines returns the stacks of all goroutines of the process.
func Goroutines() []string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size {
			return strings.Split(string(text[:n]), "\n\n")
		}
	}
}
