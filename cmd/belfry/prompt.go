package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/errs"
)

// terminal returns the file descriptor of a terminal that is read, and whether it is one.
func terminal(in io.Reader) (fd int, ok bool) {
	f, ok := in.(*os.File)
	if !ok {
		return 0, false
	}
	return int(f.Fd()), term.IsTerminal(int(f.Fd()))
}

// readPassword reads a password: twice and without an echo from a terminal, else the first
// line of standard input.
func readPassword(ctx context.Context, s streams) (string, error) {
	fd, ok := terminal(s.in)
	if !ok {
		password, err := readLine(ctx, s.in)
		if err == nil && password == "" {
			err = errs.New(errs.Invalid, "no password: expected it as the first line of standard input")
		}
		return password, err
	}
	var both [2]string
	for i, prompt := range [...]string{"Password: ", "Again: "} {
		var err error
		if both[i], err = readHidden(ctx, s.err, fd, prompt); err != nil {
			return "", err
		}
	}
	if both[0] != both[1] {
		return "", errs.New(errs.Invalid, "the passwords differ")
	}
	return both[0], nil
}

// readHidden reads a line from a terminal without an echo. When ctx ends the echo is turned
// on again.
func readHidden(ctx context.Context, w io.Writer, fd int, prompt string) (string, error) {
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(w, prompt)
	defer fmt.Fprintln(w)
	line, err := await(ctx, func() (string, error) {
		text, err := term.ReadPassword(fd)
		return string(text), err
	})
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return line, err
}

// maxLine is the most bytes of a line that is read: no password is as long, in any form of Unicode.
const maxLine = 8 * passwords.MaxPassword

// readLine reads one line, which may lack its end.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	return await(ctx, func() (string, error) {
		line, err := bufio.NewReader(io.LimitReader(in, maxLine)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return strings.TrimRight(line, "\r\n"), err
	})
}

// await returns what read returns, or the error of ctx when that ends first; then read
// continues until the process ends.
func await(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := read()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// confirm asks for a yes on a terminal. Without one it is refused.
func confirm(ctx context.Context, s streams, question string) error {
	if _, ok := terminal(s.in); !ok {
		return errs.New(errs.Invalid, "standard input is no terminal to ask on: confirm with --yes")
	}
	fmt.Fprint(s.err, question)
	line, err := readLine(ctx, s.in)
	if err == nil && strings.TrimSpace(line) != "yes" {
		err = errs.New(errs.Canceled, "not confirmed: nothing was done")
	}
	return err
}
