package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"belfry/test/chaos/history"
)

// Commands runs belfry's own checks of a deployment: belfry verify, and the list of dead letters.
func Commands(ctx context.Context, program, config string, r *Report) error {
	out, exit, err := run(ctx, program, "verify", "--json", "--config", config)
	if err != nil {
		return err
	}
	if exit != 0 {
		r.add(Verify, name(config), "exit %d: %s", exit, history.Short([]byte(out)))
	}
	out, exit, err = run(ctx, program, "dlq", "list", "--json", "--config", config)
	if err != nil {
		return err
	}
	if exit != 0 {
		return fmt.Errorf("belfry dlq list: exit %d: %s", exit, out)
	}
	for letter := range strings.Lines(out) {
		if strings.HasPrefix(letter, "{") {
			r.add(DeadLetter, name("dlq"), "%s", history.Short([]byte(letter)))
		}
	}
	return nil
}

// run returns the output of a command, and an error when it could not run.
func run(ctx context.Context, program string, args ...string) (out string, exit int, err error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=10")
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ctx.Err() == nil {
		err = nil
	}
	return text.String(), cmd.ProcessState.ExitCode(), err
}
