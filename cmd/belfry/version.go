package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionCmd struct{}

// Run says the version, the commit it was built from, and the platform.
func (versionCmd) Run(s streams) error {
	version, commit := "development", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				commit = " commit " + setting.Value
			}
		}
	}
	_, err := fmt.Fprintf(s.out, "belfry %s%s %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
