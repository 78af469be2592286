package kit

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the process when the thread that started
// it ends.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}

// Processors returns the numbers of the processors that this process may run on.
func Processors() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var all []int
	for p := 0; len(all) < set.Count(); p++ {
		if set.IsSet(p) {
			all = append(all, p)
		}
	}
	return all, nil
}

// onProcessors calls start while this thread is bound to processors, which a process inherits that start starts. The
// caller has locked the thread.
func onProcessors(processors []int, start func() error) error {
	if len(processors) == 0 {
		return start()
	}
	var before, wanted unix.CPUSet
	for _, p := range processors {
		wanted.Set(p)
	}
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("binding a process to the processors %v: %w", processors, err)
	}
	return errors.Join(start(), unix.SchedSetaffinity(0, &before))
}
