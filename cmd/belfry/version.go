package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"belfry/pkg/app"
)

type versionCmd struct{}

// Run prints the version, the commit it was built from, and the platform.
func (versionCmd) Run(s streams) error {
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = " commit " + setting.Value
			}
		}
	}
	_, err := fmt.Fprintf(s.out, "belfry %s%s %s %s/%s\n", app.Version(), commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
