package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"belfry/internal/count"
	"belfry/pkg/operations/importer"
)

// How often progress is reported: more often where it replaces the report before.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 5 * time.Second
)

// display reports the progress of an import: with a bar on a terminal, otherwise with a line at an
// interval.
type display struct {
	mu    sync.Mutex
	w     io.Writer
	file  string
	size  int64                    // bytes; -1 if it is unknown
	bar   *progressbar.ProgressBar // nil without a terminal
	began time.Time
}

func newDisplay(w io.Writer, file string, size int64) *display {
	d := &display{w: w, file: file, size: size, began: time.Now()}
	if isTerminal(w) {
		d.bar = progressbar.NewOptions64(size,
			progressbar.OptionSetWriter(w),
			progressbar.OptionShowBytes(true),
			progressbar.OptionFullWidth(),
			progressbar.OptionSetPredictTime(size > 0),
		)
	}
	return d
}

// isTerminal reports whether a writer is a terminal.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// follow reports progress until the function that it returns is called.
func (d *display) follow(progress func() importer.Progress) (stop func()) {
	interval := lineInterval
	if d.bar != nil {
		interval = barInterval
	}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				d.show(progress())
			}
		}
	})
	return func() {
		close(done)
		reporting.Wait()
		d.end(progress())
	}
}

func (d *display) show(p importer.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bar != nil {
		d.bar.Describe(count.Of(p.Read, "object"))
		// An error of the bar does not stop the import.
		_ = d.bar.Set64(p.Bytes)
		return
	}
	share := ""
	if d.size > 0 {
		share = fmt.Sprintf(" (%d %%)", p.Bytes*100/d.size)
	}
	fmt.Fprintf(d.w, "%s: %s read%s, %d rejected, %.0f a second\n",
		d.file, count.Of(p.Read, "object"), share, p.Failed, rate(p, time.Since(d.began)))
}

// end keeps the bar at its position.
func (d *display) end(p importer.Progress) {
	if d.bar == nil {
		return
	}
	d.show(p)
	_ = d.bar.Exit()
	fmt.Fprintln(d.w)
}

// failure reports an object that was refused, in the format of compilers.
func (d *display) failure(f importer.Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bar != nil {
		_ = d.bar.Clear()
	}
	fmt.Fprintf(d.w, "%s:%s\n", d.file, f)
}
