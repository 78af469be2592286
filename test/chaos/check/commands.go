package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"belfry/pkg/missed"
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

// Missed lists the listeners, and checks that it says of these that they have missed events, and that this is repaired.
func (c Commands) Missed(ctx context.Context, repaired []string, r *Report) error {
	out, exit, err := c.run(ctx, "listener", "list", "--json", "--config", c.Config)
	if err == nil && exit != 0 {
		err = fmt.Errorf("belfry listener list: exit %d: %s", exit, out)
	}
	listed := map[string]missed.Missed{}
	for line := range strings.Lines(out) {
		var row struct {
			Name   string
			Missed missed.Missed
		}
		if json.Unmarshal([]byte(line), &row) == nil {
			listed[row.Name] = row.Missed
		}
	}
	for _, listener := range repaired {
		if m := listed[listener]; m.Reason != missed.Replaced || m.Repaired.IsZero() {
			r.add(LossUnreported, name("belfry listener list"), "of %s it says %+v", listener, m)
		}
	}
	return err
}

// Confirm confirms what a listener has missed.
func (c Commands) Confirm(ctx context.Context, listener string, r *Report) error {
	out, exit, err := c.run(ctx, "listener", "confirm", listener, "--config", c.Config)
	if err == nil && exit != 0 {
		r.add(LossUnreported, name("belfry listener confirm"), "exit %d: %s", exit, history.Short([]byte(out)))
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
