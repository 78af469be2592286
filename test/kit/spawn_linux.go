package kit

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when the thread that started
// it ends.
func dieWithParent(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
