package kit

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// share is the part of a processor that a thread which computes gets now, as far as the kernel's number of threads that
// want one says it.
func share() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 1
	}
	return shareOf(string(data), runtime.NumCPU())
}

// shareOf reads a line such as "0.20 0.18 0.12 5/80 11206": 5 threads run, or would.
func shareOf(loadavg string, processors int) float64 {
	fields := strings.Fields(loadavg)
	if len(fields) < 4 {
		return 1
	}
	text, _, _ := strings.Cut(fields[3], "/")
	running, err := strconv.Atoi(text)
	if err != nil || running <= processors {
		return 1
	}
	return float64(processors) / float64(running)
}
