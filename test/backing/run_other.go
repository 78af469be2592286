//go:build !linux

package backing

import "os/exec"

// dieWithParent does nothing where no kernel offers it: a server then outlives
// a test that is killed.
func dieWithParent(*exec.Cmd) {}

func lockThread() (unlock func()) { return func() {} }
