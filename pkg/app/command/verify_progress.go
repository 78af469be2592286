package command

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"belfry/internal/count"
	"belfry/pkg/mapping/verify"
)

// verifyDisplay reports the progress of a verification: with a bar on a terminal, otherwise with a line at an
// interval.
type verifyDisplay struct {
	w     io.Writer
	bar   *progressbar.ProgressBar // nil without a terminal
	total int64                    // of the bar; -1 while it is unknown
	said  time.Time                // when the last line was written
	last  verify.Progress
}

// How often the progress is shown.
const (
	barInterval  = 100 * time.Millisecond
	lineInterval = 5 * time.Second
)

// showVerify shows the progress of a verification.
func showVerify(s Streams, q VerifyRequest) (report func(verify.Progress), end func(error)) {
	d := newVerifyDisplay(s.Err, s.Terminal)
	return d.update, func(err error) {
		d.end()
		if err != nil {
			d.hint(q.Repair)
		}
	}
}

func newVerifyDisplay(w io.Writer, terminal bool) *verifyDisplay {
	d := &verifyDisplay{w: w, total: -1, said: time.Now()}
	if terminal {
		d.bar = progressbar.NewOptions64(d.total,
			progressbar.OptionSetWriter(w), progressbar.OptionFullWidth(),
			progressbar.OptionThrottle(barInterval), progressbar.OptionSetPredictTime(false),
		)
	}
	return d
}

func (d *verifyDisplay) update(p verify.Progress) {
	d.last = p
	switch {
	case d.bar != nil:
		// An error of the bar does not stop the command.
		d.bar.Describe(describeProgress(p))
		if p.Reading == "" && p.Differ > 0 && d.total != p.Differ {
			d.total = p.Differ
			d.bar.ChangeMax64(d.total)
		}
		if d.total > 0 {
			_ = d.bar.Set64(p.Settled)
		} else {
			_ = d.bar.Set64(p.Objects + p.Targets)
		}
	case time.Since(d.said) >= lineInterval:
		d.said = time.Now()
		fmt.Fprintln(d.w, describeProgress(p))
	}
}

// end removes the bar, for the report to follow.
func (d *verifyDisplay) end() {
	if d.bar != nil {
		_ = d.bar.Clear()
	}
}

// hint prints after an error or an interrupt how much was repaired, and how to continue.
func (d *verifyDisplay) hint(repair bool) {
	if repair && d.last.Differ > 0 {
		fmt.Fprintf(d.w, "repaired %d of %s; run the command again to repair the rest\n", d.last.Repaired,
			count.Of(d.last.Differ, "object"))
	}
}

func describeProgress(p verify.Progress) string {
	read := fmt.Sprintf("%s and %s read", count.Of(p.Objects, "object"), count.Of(p.Targets, "target"))
	differing := count.Of(p.Differ, "object differs", "objects differ")
	switch {
	case p.Reading != "":
		return "reading " + p.Reading + ": " + read
	case p.Differ == 0:
		return read
	case p.Repair:
		return fmt.Sprintf("%s, %s: %d repaired", read, differing, p.Repaired)
	default:
		return fmt.Sprintf("%s, %s: reading again, %d settled", read, differing, p.Settled)
	}
}
