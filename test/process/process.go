// Package process runs the real belfry for tests: built with the race detector, started on free
// ports, killed or stopped by its own process id.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/kit/gotest"
	"belfry/test/kit/programs"
)

// Program returns the path of belfry, built with the race detector.
func Program(t testing.TB) string {
	t.Helper()
	program, err := programs.Belfry()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// Commands returns the path of belfry as users run it, for commands other than serve: a process with the race
// detector takes five times as long to start. What commands do at once is tested in one process, with the detector.
func Commands(t testing.TB) string {
	t.Helper()
	program, err := programs.BelfryWithoutRace()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// raceEverywhere, in the environment, has all servers run with the race detector. make soak sets it.
const raceEverywhere = "BELFRY_TEST_RACE"

// Plain returns the path of the belfry that serves where a test does one thing after the other, or looks at something
// else than what belfry does at once: as users run it.
func Plain(t testing.TB) string {
	t.Helper()
	if os.Getenv(raceEverywhere) != "" {
		return Program(t)
	}
	return Commands(t)
}

// Main runs the tests of a package that uses StartBus: a testing.M, perhaps with something around it.
func Main(m interface{ Run() int }) {
	if folder := os.Getenv(busFolder); folder != "" {
		if err := serveBus(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// environment returns the environment of every belfry. belfry itself decides when it collects its heap,
// as with users. Metrics have a port of their own.
func environment() []string {
	return append(os.Environ(), gotest.RaceOptions, "GOGC=", "BELFRY_METRICS_LISTEN=127.0.0.1:0")
}

// Server is a running belfry.
type Server struct {
	URL     string // of HTTP
	Bus     string // URL of the embedded bus; "" when it has no port
	Metrics string // URL of the metrics
	Banner  string // its output when it was ready
	cmd     *exec.Cmd
	stderr  *kit.Tail
	banner  chan error // one value, once the banner was printed or the output has ended
	done    chan struct{}
	err     error // of the process, once done is closed
}

var (
	httpURL    = regexp.MustCompile(`http://\S+`)
	metricsURL = regexp.MustCompile(`http://\S+/metrics`)
	busURL     = regexp.MustCompile(`nats://\S+`)
)

// bannerEnd begins the last line of the banner.
const bannerEnd = "  data "

// Serve is Start for a test. The process is killed at the end of the test if
// it still runs, and a data race in it fails the test.
func Serve(t testing.TB, config string, args ...string) *Server {
	t.Helper()
	return ServeLater(t, config, args...)()
}

// ServePlain is Serve for the belfry that Plain returns.
func ServePlain(t testing.TB, config string, args ...string) *Server {
	t.Helper()
	return serveLater(t, Plain(t), config, args...)()
}

// ServeLater is Serve for a belfry that can't serve yet. wait returns it once it
// serves.
func ServeLater(t testing.TB, config string, args ...string) (wait func() *Server) {
	t.Helper()
	return serveLater(t, Program(t), config, args...)
}

func serveLater(t testing.TB, program, config string, args ...string) (wait func() *Server) {
	t.Helper()
	s, err := Launch(program, append([]string{"--config", config}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if race := s.Race(); race != "" {
			t.Errorf("belfry has a data race:\n%s", race)
		}
		if failures := s.failures(); t.Failed() && failures != "" {
			t.Logf("belfry logged:\n%s", failures)
		}
	})
	return func() *Server {
		t.Helper()
		if err := s.serves(); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// Start starts a belfry, with env added to the environment, and waits until it
// serves.
func Start(program string, env []string, args ...string) (*Server, error) {
	s, err := launch(program, env, args...)
	if err == nil {
		err = s.serves()
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Launch starts a belfry that may not be able to serve yet: it has no URL.
func Launch(program string, args ...string) (*Server, error) { return launch(program, nil, args...) }

// Ended reports whether the process has ended.
func (s *Server) Ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// launch starts the process.
func launch(program string, env []string, args ...string) (*Server, error) {
	s := &Server{stderr: &kit.Tail{Limit: LogKept}, banner: make(chan error, 1), done: make(chan struct{})}
	s.cmd = exec.Command(program, append([]string{"serve"}, args...)...)
	s.cmd.Env = append(environment(), env...)
	s.cmd.Stderr = s.stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := kit.Start(s.cmd); err != nil {
		return nil, err
	}
	go s.follow(out)
	return s, nil
}

// follow reads the output of the process until it ends.
func (s *Server) follow(out io.Reader) {
	lines := bufio.NewReader(out)
	var err error
	for line := ""; err == nil && !strings.HasPrefix(line, bannerEnd); {
		line, err = lines.ReadString('\n')
		s.Banner += line
	}
	s.Metrics = metricsURL.FindString(s.Banner)
	s.URL, s.Bus = httpURL.FindString(s.Banner), busURL.FindString(s.Banner)
	s.banner <- err
	_, _ = io.Copy(io.Discard, lines)
	s.err = s.cmd.Wait()
	close(s.done)
}

// serves waits for the banner.
func (s *Server) serves() error {
	select {
	case err := <-s.banner:
		if err == nil {
			return s.usesFreePorts()
		}
		<-s.done
		return fmt.Errorf("belfry did not start: %w\n%s", s.err, s.stderr)
	case <-time.After(kit.Limit):
		return s.hangs("did not start")
	}
}

// usesFreePorts ends a process that listens on a default port: tests run side by side, and beside
// servers of the developer.
func (s *Server) usesFreePorts() error {
	for _, url := range []string{s.URL, s.Bus} {
		if strings.HasSuffix(url, ":8080") || strings.HasSuffix(url, ":4222") {
			s.Kill()
			return fmt.Errorf("belfry listens on a default port, %s, which another process may need: set listen and "+
				"bus.listen to 127.0.0.1:0", url)
		}
	}
	return nil
}

// hangs ends the process with the stacks of its goroutines, and returns its output.
func (s *Server) hangs(what string) error {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.done
	return fmt.Errorf("belfry %s within %s\n%s", what, kit.Limit, s.stderr)
}

// Race returns the report of a data race in the process, or "".
func (s *Server) Race() string {
	if log := s.stderr.String(); strings.Contains(log, "DATA RACE") {
		return log
	}
	return ""
}

// failures returns the errors that the process logged, so that a test that failed on an internal error
// shows its cause.
func (s *Server) failures() string {
	var b strings.Builder
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, "level=ERROR") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Kill ends the process as a power cut would end it, and waits for its end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// Signal sends the process a signal.
func (s *Server) Signal(signal os.Signal) error {
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits for the end of the process and returns how it ended.
func (s *Server) Wait() error {
	select {
	case <-s.done:
		return s.err
	case <-time.After(kit.Limit):
		return s.hangs("did not end")
	}
}

// Stop asks the process to stop and returns how it ended.
func (s *Server) Stop() error {
	if err := s.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.Wait()
}

// PID returns the id of the process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Log returns the end of the process's standard error, at most LogKept bytes.
func (s *Server) Log() string { return s.stderr.String() }

// Run runs a belfry command to its end.
func Run(program string, args ...string) (stdout, stderr string, exit int, err error) {
	return RunIn("", program, args...)
}

// RunIn is Run in a folder.
func RunIn(folder, program string, args ...string) (stdout, stderr string, exit int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = folder, environment()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		err = nil
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode(), err
}

// Eventually waits until right returns nil, and fails with its last error.
func Eventually(t testing.TB, patience time.Duration, right func() error) {
	t.Helper()
	if err := kit.Await(patience, right); err != nil {
		t.Fatal(err)
	}
}

// LogKept is enough for all that a script's belfry logs at level debug, even with
// many polls on a slow machine.
const LogKept = 32 << 20
