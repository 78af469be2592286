package kit

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
)

type order struct {
	cmd        *exec.Cmd
	processors []int
	started    chan error
}

// ErrProcessors says that processes can't be bound to processors on this system.
var ErrProcessors = errors.New("processes can be bound to processors on Linux alone")

var orders = make(chan order)

// thread runs once. The kernel ends a process when the thread that started it
// ends: so this one starts all, and lasts as long as the test.
var thread = sync.OnceFunc(func() {
	go func() {
		runtime.LockOSThread()
		for o := range orders {
			o.started <- onProcessors(o.processors, o.cmd.Start)
		}
	}()
})

// Start starts a command as cmd.Start does.
func Start(cmd *exec.Cmd) error { return StartOn(cmd, nil) }

// StartOn is Start, and the process and those that it starts run on these processors alone; with none, on those of this
// process. Where no system offers that, the error is ErrProcessors.
func StartOn(cmd *exec.Cmd, processors []int) error {
	thread()
	dieWithParent(cmd)
	o := order{cmd: cmd, processors: processors, started: make(chan error)}
	orders <- o
	return <-o.started
}
