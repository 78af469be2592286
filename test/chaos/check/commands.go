package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"belfry/test/chaos/history"
)

// Commands runs belfry's own checks of a deployment.
type Commands struct {
	Program string   // of belfry
	Config  string   // of the deployment
	Env     []string // nil: that of this process
}

// Verify runs belfry verify.
func (c Commands) Verify(ctx context.Context, r *Report) error {
	out, exit, err := c.run(ctx, "verify", "--config", c.Config) // as text, which begins with the differences
	if err == nil && exit != 0 {
		r.add(Verify, name("belfry verify"), "exit %d: %s", exit, history.Short([]byte(out)))
	}
	return err
}

// DeadLetters lists the dead letters.
func (c Commands) DeadLetters(ctx context.Context, r *Report) error {
	out, exit, err := c.run(ctx, "dlq", "list", "--json", "--config", c.Config)
	if err == nil && exit != 0 {
		err = fmt.Errorf("belfry dlq list: exit %d: %s", exit, out)
	}
	for letter := range strings.Lines(out) {
		if strings.HasPrefix(letter, "{") {
			r.add(DeadLetter, name("belfry dlq"), "%s", history.Short([]byte(letter)))
		}
	}
	return err
}

// run returns the output of a command, and an error when it could not run.
func (c Commands) run(ctx context.Context, args ...string) (out string, exit int, err error) {
	cmd := exec.CommandContext(ctx, c.Program, args...)
	cmd.Env = c.Env
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return text.String(), 0, fmt.Errorf("belfry %s: %w: %s", args[0], err, history.Short(text.Bytes()))
	}
	return text.String(), cmd.ProcessState.ExitCode(), nil
}
