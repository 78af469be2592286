package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"belfry/pkg/app/plan"
)

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(s streams) error {
	_, err := fmt.Fprintln(s.out, version())
	return err
}

// versionFlag prints the version instead of running a command. That of package kong needs a variable of all commands.
type versionFlag bool

// BeforeReset runs when the flag is found, with anything else on the command line.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	_, err := fmt.Fprintln(app.Stdout, version())
	app.Exit(exitDone)
	return err
}

// version is the version, the commit it was built from, and the platform.
func version() string {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = " commit " + setting.Value
			}
		}
	}
	return fmt.Sprintf("belfry %s%s %s %s/%s", plan.Version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
