// Package e2e runs scripts against the real belfry: requests, commands and
// events, and then, eventually, the state they lead to. A script is a file of
// testdata; commands_test.go documents its commands. Other tests cover what
// scripts can't express: hostile bytes on the wire, signals. Each script has a copy of
// examples/teams, whose bus.yaml is the same with a port for the bus.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"belfry/test/process"
)

// TestMain runs more scripts in parallel than there are processors: they wait more
// than they compute.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	process.Main(m)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	program, commandLine := process.Plain(t), process.Commands(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			s, err := newSession(env, program, commandLine)
			if err != nil {
				return err
			}
			env.Values[sessionKey{}] = s
			return copyExample(filepath.Join(env.WorkDir, "examples", "teams"))
		},
		Cmds:                commands(),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("E2E_UPDATE") != "",
	})
}

func copyExample(folder string) error {
	if err := os.CopyFS(folder, os.DirFS("../../examples/teams")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, "belfry.yaml"))
	if err != nil {
		return err
	}
	without, with := `bus: {listen: ""}`, `bus: {listen: "127.0.0.1:0"}`
	if !strings.Contains(string(text), without) {
		return fmt.Errorf("examples/teams/belfry.yaml has no %s", without)
	}
	return os.WriteFile(filepath.Join(folder, "bus.yaml"), []byte(strings.Replace(string(text), without, with, 1)),
		0o600)
}
