package backing

import (
	"os/exec"
	"runtime"
	"syscall"
)

// dieWithParent has the kernel kill the process when the thread that started
// it ends.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}
