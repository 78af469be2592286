package early

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"belfry/test/process"
)

// A signal that arrives while packages are initialized is kept for the serving process, and ends other commands.
func TestServeReceivesHangupsFromTheBeginning(t *testing.T) {
	for command, want := range map[string]bool{"serve": true, "health": false} {
		args := os.Args
		os.Args = []string{"belfry", command}
		if got := receive() != nil; got != want {
			t.Errorf("%s: %v", command, got)
		}
		os.Args = args
	}
}

// The tables of the library that estimates passwords, and the packages of belfry, take nearly all of the time.
func TestItIsInitializedBeforeWhatTakesLong(t *testing.T) {
	program := process.Commands(t)
	c := exec.CommandContext(t.Context(), program, "version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	traced, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, traced)
	}
	before, _, found := strings.Cut(string(traced), "init belfry/cmd/belfry/early ")
	if !found {
		t.Fatalf("it is not initialized: %s", traced)
	}
	for line := range strings.Lines(before) {
		name := strings.Fields(line)[1]
		if name == "github.com/trustelem/zxcvbn/matching" ||
			strings.HasPrefix(name, "belfry/") && name != "belfry/cmd/belfry/early/collector" {
			t.Errorf("%s is initialized first", name)
		}
	}
}
