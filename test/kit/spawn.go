package kit

import (
	"os/exec"
	"runtime"
	"sync"
)

type order struct {
	cmd     *exec.Cmd
	started chan error
}

var orders = make(chan order)

// thread runs once. The kernel ends a process when the thread that started it
// ends: so this one starts all, and lasts as long as the test.
var thread = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for o := range orders {
			o.started <- o.cmd.Start()
		}
	}()
})

// Start starts a command as cmd.Start does.
func Start(cmd *exec.Cmd) error {
	thread()
	dieWithParent(cmd)
	o := order{cmd: cmd, started: make(chan error)}
	orders <- o
	return <-o.started
}
