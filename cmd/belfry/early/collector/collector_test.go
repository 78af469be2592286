package collector

import (
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"

	"belfry/test/process"
)

// The collector is delayed for the commands that start often, where that was not set otherwise.
func TestTheCollectorIsDelayedForServeAndHealth(t *testing.T) {
	args, before := os.Args, debug.SetGCPercent(100)
	defer func() {
		os.Args = args
		debug.SetGCPercent(before)
	}()
	for _, c := range []struct {
		command, set string
		want         int
	}{{"serve", "", firstPercent}, {"health", "", firstPercent}, {"serve", "50", 100}, {"verify", "", 100}} {
		t.Setenv("GOGC", c.set)
		os.Args = []string{"belfry", c.command}
		delayed := delay()
		if got := debug.SetGCPercent(100); got != c.want || delayed != (c.want == firstPercent) {
			t.Errorf("%s with GOGC=%s: %d", c.command, c.set, got)
		}
	}
}

// Most of what packages allocate is allocated after this package is initialized, so no collection runs.
func TestNoCollectionRunsWhilePackagesAreInitialized(t *testing.T) {
	program := process.Commands(t)
	c := exec.CommandContext(t.Context(), program, "health", "--url", "http://127.0.0.1:1")
	c.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=")
	traced, err := c.CombinedOutput()
	if err == nil {
		t.Error("a server that is not there is healthy")
	}
	if strings.Contains(string(traced), "gc 1 @") {
		t.Errorf("a collection runs: %s", traced)
	}
}
