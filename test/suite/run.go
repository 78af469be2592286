package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how much longer than its timeout a test binary may take: it ends itself at the timeout, with
// the stacks of all goroutines.
const grace = time.Minute

// result is what the tests of a package did.
type result struct {
	target *target
	output []byte
	took   time.Duration
	spent  time.Duration // CPU time
	err    error

	repeated bool // since the race detector itself failed
}

// runAll runs the tests of packages, prints a line for each, and the output of those that fail.
func runAll(ctx context.Context, out io.Writer, all []*target, atOnce int, timeout time.Duration) error {
	start := time.Now()
	next, done := make(chan *target), make(chan result)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for t := range next {
				done <- run(ctx, t, timeout)
			}
		})
	}
	go func() {
		for _, t := range all {
			next <- t
		}
		close(next)
		workers.Wait()
		close(done)
	}()
	var failed []string
	var spent time.Duration
	for r := range done {
		spent += r.spent
		if ctx.Err() == nil {
			r.print(out)
		}
		if r.err != nil {
			failed = append(failed, r.target.path)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	_, _ = fmt.Fprintf(out, "Ran the tests of %d packages in %s, CPU time %s\n", len(all), seconds(time.Since(start)),
		seconds(spent))
	if len(failed) > 0 {
		return fmt.Errorf("these packages failed: %s", strings.Join(failed, " "))
	}
	return nil
}

// run runs the tests of a package, and once more if the race detector failed, and not the tests.
func run(ctx context.Context, t *target, timeout time.Duration) result {
	r := attempt(ctx, t, timeout)
	if r.err != nil && detectorFailed(r.output) {
		first := r
		r = attempt(ctx, t, timeout)
		r.took, r.spent, r.repeated = r.took+first.took, r.spent+first.spent, true
	}
	return r
}

// detectorFailed reports whether the runtime of the race detector ended a process since a condition of its own did not
// hold, which happens in a process that has hardly begun, on a busy machine. It has found no race then, and no test has
// failed.
func detectorFailed(output []byte) bool {
	return bytes.Contains(output, []byte("ThreadSanitizer: CHECK failed")) &&
		!bytes.Contains(output, []byte("DATA RACE")) && !bytes.Contains(output, []byte("--- FAIL"))
}

// attempt runs the tests of a package once.
func attempt(ctx context.Context, t *target, timeout time.Duration) result {
	if ctx.Err() != nil {
		return result{target: t, err: ctx.Err()}
	}
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	// An os.Exit(0) within a test is a failure, as in go test.
	args := append([]string{"-test.paniconexit0", "-test.timeout=" + timeout.String()}, t.args...)
	if t.output != "" {
		args = append(args, "-test.v")
	}
	cmd := exec.CommandContext(limited, t.binary, args...)
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.folder, &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) } // it prints its stacks
	cmd.WaitDelay = grace                                                    // for processes that it started, and left
	r := result{target: t, err: cmd.Run()}
	r.output, r.took = output.Bytes(), time.Since(start)
	if cmd.ProcessState != nil {
		r.spent = cpu(cmd.ProcessState)
	}
	if errors.Is(r.err, exec.ErrWaitDelay) {
		r.err = fmt.Errorf("a process that the tests started continues: %w", r.err)
	}
	if t.output != "" {
		r.err = errors.Join(r.err, os.WriteFile(t.output, r.output, 0o600))
	}
	if none := missing(t.must, r.output); r.err == nil && len(none) > 0 {
		r.err = fmt.Errorf("these tests of test/suite/rest did not run: %s", strings.Join(none, " "))
	}
	return r
}

// print prints a line as go test does, and the CPU time; of tests that failed, their output before it.
func (r result) print(out io.Writer) {
	word := "ok  "
	if r.err != nil {
		word = "FAIL"
		_, _ = fmt.Fprintf(out, "%s%s: %v\n", r.output, r.target.path, r.err)
	}
	if r.repeated {
		_, _ = fmt.Fprintf(out, "%s: the race detector itself failed, so the tests ran once more\n", r.target.path)
	}
	_, _ = fmt.Fprintf(out, "%s\t%s\t%s\tcpu %s\n", word, r.target.path, seconds(r.took), seconds(r.spent))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
