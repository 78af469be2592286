//go:build !linux

package kit

import "os/exec"

// dieWithParent does nothing where no kernel offers it: a process then outlives
// a test that is killed.
func dieWithParent(*exec.Cmd) {}

// Processors returns ErrProcessors.
func Processors() ([]int, error) { return nil, ErrProcessors }

func onProcessors(processors []int, start func() error) error {
	if len(processors) > 0 {
		return ErrProcessors
	}
	return start()
}
