package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belfry/test/kit"
)

// serving runs `belfry serve` in this process until the test ends.
func serving(t *testing.T, file string) (logged *kit.Tail) {
	t.Helper()
	logged = &kit.Tail{}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"serve", "-c", file}, streams{nil, io.Discard, logged})
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitDone {
			t.Errorf("exit %d: %s", code, logged)
		}
	})
	kit.WaitFor(t, "belfry is ready", func() bool {
		return strings.Contains(logged.String(), "msg=ready") || strings.Contains(logged.String(), `"msg":"ready"`)
	})
	return logged
}

// Both ways to reload: the command reports what changed or what is refused, the signal has it in the log.
func TestReloadByCommandAndBySignal(t *testing.T) {
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log: {format: json}\n")
	logged := serving(t, file)

	belfry(t, 0, "reloaded; nothing has changed", "reload", "-c", file)
	write("log: {format: json, level: debug}\ndata: elsewhere\n")
	belfry(t, 2, "4:1: data: can't change while belfry runs", "reload", "-c", file, "--data",
		filepath.Join(filepath.Dir(file), "data"))
	write("log: {format: json, level: debug}\nlimits: {loopback: true}\n")
	belfry(t, 0, "reloaded; these keys changed:\n  limits\n  log.level\n", "reload", "-c", file)
	write("log: {format: json, level: nonsense}\n")
	belfry(t, 2, "log.level: expected debug", "reload", "-c", file)
	belfry(t, 2, "log.level: expected debug", "reload", "--data", filepath.Join(filepath.Dir(file), "data"))

	hangup := func(says string) {
		t.Helper()
		before := strings.Count(logged.String(), says)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		kit.WaitFor(t, "the log says: "+says, func() bool { return strings.Count(logged.String(), says) > before })
	}
	hangup("belfry serves with the previous one")
	write("log: {format: json}\n")
	hangup(`"changed":"limits, log.level"`)
	other := t.TempDir()
	belfry(t, 1, "no belfry serves", "reload", "--data", other)
	if all, err := os.ReadDir(other); err != nil || len(all) > 0 {
		t.Errorf("the folder of something else has %v, %v", all, err)
	}
}
