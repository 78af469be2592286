package world

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"belfry/test/kit"
)

// unit is a process that is started again when it ends by itself, as a service manager would.
type unit struct {
	name   string
	config string // its file
	// Of a process of belfry: the text of config at the beginning, its data folder, its program, and the URL of HTTP.
	original, data, program, url string

	command func() *exec.Cmd
	varied  atomic.Bool // it may have another configuration than original

	mu     sync.Mutex
	run    *run // the last
	wanted bool // to run
	ends   []string
}

// run is one life of a process.
type run struct {
	cmd  *exec.Cmd
	log  *kit.Tail
	done chan struct{}
}

const (
	logKept   = 8 << 20 // the stacks of all goroutines of a busy process have some MiB
	shownLog  = 4 << 10
	restart   = 200 * time.Millisecond // until a process that ended by itself is started again
	endsLimit = 20                     // of one unit: more is a loop
)

// start starts the process unless it runs.
func (u *unit) start() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wanted = true
	if u.run != nil {
		select {
		case <-u.run.done:
		default:
			return nil
		}
	}
	return u.launch()
}

// launch starts a run. The caller holds the lock.
func (u *unit) launch() error {
	r := &run{cmd: u.command(), log: &kit.Tail{Limit: logKept}, done: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = r.log, r.log
	if err := kit.Start(r.cmd); err != nil {
		return fmt.Errorf("starting %s: %w", u.name, err)
	}
	u.run = r
	go u.follow(r)
	return nil
}

// follow waits for the end of a run, and starts the next one if nobody wanted that end.
func (u *unit) follow(r *run) {
	err := r.cmd.Wait()
	close(r.done)
	u.mu.Lock()
	again := u.wanted && u.run == r
	if again {
		u.ends = append(u.ends, fmt.Sprintf("%s ended by itself: %v\n%s", u.name, err, r.end()))
		again = len(u.ends) < endsLimit
	}
	u.mu.Unlock()
	if !again {
		return
	}
	<-time.After(restart)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.wanted && u.run == r {
		if err := u.launch(); err != nil {
			u.ends = append(u.ends, err.Error())
		}
	}
}

// end is the end of the output.
func (r *run) end() string {
	log := r.log.String()
	return log[max(0, len(log)-shownLog):]
}

// kill ends the process as a crash would. It is not started again.
func (u *unit) kill() {
	u.mu.Lock()
	u.wanted = false
	r := u.run
	u.mu.Unlock()
	if r != nil {
		_ = r.cmd.Process.Kill()
		<-r.done
	}
}

// goroutines ends the process and returns what its goroutines were doing. It is not started again.
func (u *unit) goroutines() string {
	u.mu.Lock()
	u.wanted = false
	r := u.run
	u.mu.Unlock()
	if r == nil {
		return "not started"
	}
	_ = r.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-r.done:
	case <-time.After(kit.Limit):
		return "it does not end"
	}
	_, all, _ := strings.Cut(r.log.String(), "SIGQUIT")
	return all
}

// stop asks the process to end, and returns how it ended.
func (u *unit) stop() error {
	u.mu.Lock()
	u.wanted = false
	r := u.run
	u.mu.Unlock()
	if r == nil {
		return nil
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.done:
	case <-time.After(kit.Limit):
		_ = r.cmd.Process.Signal(syscall.SIGQUIT)
		<-r.done
		return fmt.Errorf("%s did not stop within %s:\n%s", u.name, kit.Limit, r.log)
	}
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s stopped with exit code %d:\n%s", u.name, code, r.end())
	}
	return nil
}

// signal sends the process a signal.
func (u *unit) signal(s os.Signal) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.run == nil {
		return nil
	}
	if err := u.run.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", u.name, err)
	}
	return nil
}

// log is the end of the last run's output.
func (u *unit) log() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.run == nil {
		return ""
	}
	return u.run.end()
}

// takeEnds returns how the process ended by itself since the last call.
func (u *unit) takeEnds() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	ends := u.ends
	u.ends = nil
	return ends
}
