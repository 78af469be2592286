// Package backing starts the servers of belfry's backends for tests: real ones, in processes of their
// own on loopback ports, pinned in test/servers and built by package programs. A test whose server
// can't be built or started fails.
package backing

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/kit/programs"
)

// tailSize is enough for the last output of a server.
const tailSize = 16 << 10

// process is a running server. It ends with the test, and with this process even
// when that is killed.
type process struct {
	cmd  *exec.Cmd
	on   []int // processors that it is bound to; none: to none
	log  *kit.Tail
	done chan struct{} // closed when it has ended
	err  error         // how it ended, once done is closed

	killed bool // by this process
}

// start starts a server and waits until ready returns nil. The caller may kill
// it before the test's end.
func start(t testing.TB, cmd *exec.Cmd, ready func(context.Context) error) *process {
	t.Helper()
	p := &process{cmd: cmd, log: &kit.Tail{Limit: tailSize}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	host, hosted := t.(*Host)
	if hosted {
		p.on = host.on
	}
	if err := p.run(); err != nil {
		t.Fatalf("starting %s: %v", cmd.Path, err)
	}
	if hosted {
		host.note(cmd.Process.Pid)
	}
	t.Cleanup(func() {
		select {
		case <-p.done:
			if !p.killed {
				t.Errorf("%s ended by itself: %v\n%s", cmd, p.err, p.log)
			}
		default:
			p.kill()
		}
	})
	if err := p.await(t.Context(), ready); err != nil {
		t.Fatalf("%s does not serve: %v\n%s", cmd.Path, err, p.log)
	}
	return p
}

// run starts the process and returns once it runs.
func (p *process) run() error {
	if err := kit.StartOn(p.cmd, p.on); err != nil {
		return err
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	return nil
}

// await polls until the server is ready or has ended, or kit.Limit has passed.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, kit.Limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		select {
		case <-p.done:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", kit.Limit, err)
		default:
			if err == nil {
				return nil
			}
		}
		<-tick.C
	}
}

// kill ends the process as a crash would, and waits for its end.
func (p *process) kill() {
	p.killed = true
	_ = p.cmd.Process.Kill()
	<-p.done
}

// must returns the path of a program.
func must(t testing.TB) func(path string, err error) string {
	return func(path string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// NPM installs the packages that the lock file in a folder of the project pins, and returns a copy of
// the folder with its node_modules.
func NPM(t testing.TB, source string) string {
	t.Helper()
	return must(t)(programs.NPM(source))
}

// freeAddress returns a loopback address whose port was free a moment ago.
func freeAddress(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(kit.FreePort(t)))
}
