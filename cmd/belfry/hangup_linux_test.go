package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// A belfry whose terminal was closed differs from one that is to reload by that terminal alone.
func TestAClosedTerminalIsRecognized(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if !term.IsTerminal(int(terminal.Fd())) {
		t.Fatal("it is no terminal")
	}
	inside, outside := &hangups{terminals: []*os.File{terminal}}, &hangups{}
	ended, continues := inside.follow(t.Context()), outside.follow(t.Context())
	defer inside.stop()
	defer outside.stop()
	both := func() {
		for _, h := range []*hangups{inside, outside} {
			h.signals <- syscall.SIGHUP
		}
	}
	both()
	<-inside.reloads // the terminal is open
	<-outside.reloads
	_ = master.Close()
	both()
	<-ended.Done()
	if err := context.Cause(ended); !errors.Is(err, errHangup) {
		t.Error(err)
	}
	<-outside.reloads
	if continues.Err() != nil {
		t.Error("a belfry without a terminal ends")
	}
}
