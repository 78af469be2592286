package main

import (
	"fmt"
	"os"
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
	h := &hangups{terminals: []*os.File{terminal}}
	if h.terminalClosed() {
		t.Error("the terminal is open")
	}
	_ = master.Close()
	if !h.terminalClosed() {
		t.Error("the terminal was closed")
	}
	if (&hangups{}).terminalClosed() {
		t.Error("there was none")
	}
}
