package main

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// host starts servers outside of a test. It is a testing.TB as far as package
// backing needs one.
type host struct {
	testing.TB
	ctx  context.Context
	undo []func()
}

// failure travels as a panic from Fatal to withServers.
type failure struct{ error }

// withServers stops the started servers when do returns.
func withServers(ctx context.Context, do func(h *host) error) (err error) {
	h := &host{ctx: ctx}
	defer func() {
		for i := len(h.undo) - 1; i >= 0; i-- {
			h.undo[i]()
		}
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	return do(h)
}

func (h *host) Helper()                           {}
func (h *host) Context() context.Context          { return h.ctx }
func (h *host) Cleanup(f func())                  { h.undo = append(h.undo, f) }
func (h *host) Fatal(args ...any)                 { panic(failure{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (h *host) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

func (h *host) TempDir() string {
	folder, err := os.MkdirTemp("", "belfry-load-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}
