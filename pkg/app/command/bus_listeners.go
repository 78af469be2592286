package command

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

// ListenerList reads the state of each listener, and reports why it can't tell what they have missed.
var ListenerList = Operation[none, ListenerRows, error]{
	Name: "listener list", Help: "Show the state of each listener.", Bus: Permitted, Prints: PrintLines,
	Run: func(ctx context.Context, at *Place, _ none, report func(error)) (*ListenerRows, error) {
		all, err := replay.List(ctx, at.Bus.JetStream())
		if err != nil {
			return nil, err
		}
		asking, done := at.Bus.UntilDenied(ctx, missed.SubjectList)
		defer done()
		found, err := missed.FetchReport(asking, at.Bus.Conn())
		if err != nil {
			report(err)
		}
		rows := listenerRows(all, found.Missed)
		for i := range rows {
			if rows[i].Name == event.OriginCopy {
				rows[i].Copies = found.Copies
			}
		}
		return &rows, nil
	},
	Show: func(s Streams, _ none) (func(error), func(error)) {
		return func(err error) {
			fmt.Fprintf(s.Err, "belfry: whether listeners have missed events is not known: %v\n", err)
		}, func(error) {}
	},
	Text: func(w io.Writer, _ none, rows *ListenerRows) error { return writeListeners(w, *rows) },
}

// ListenerRows are listeners with what they have missed.
type ListenerRows []ListenerRow

// WriteLines implements byLine.
func (all *ListenerRows) WriteLines(w io.Writer) error { return writeLinesOf(w, *all) }

// ListenerRow is a listener with what it has missed.
type ListenerRow struct {
	*replay.Listener
	Gone   bool           `json:"gone,omitempty"` // it no longer has a consumer, or not again yet
	Missed *missed.Missed `json:"missed,omitempty"`

	// Copies is how far each of the copies is behind that the listener keeps; nil for other listeners.
	Copies []missed.CopyLag `json:"copies,omitempty"`
}

// listenerRows returns the listeners, and those that have missed events and have no consumer.
func listenerRows(all []*replay.Listener, gaps []missed.Status) ListenerRows {
	has := map[string]bool{}
	for _, g := range gaps {
		has[g.Consumer] = true
	}
	rows, row := make([]ListenerRow, 0, len(all)), map[string]int{}
	for i, l := range all {
		rows = append(rows, ListenerRow{Listener: l})
		for _, consumer := range l.Consumers {
			row[consumer] = i
		}
	}
	for _, g := range gaps {
		i, known := row[g.Consumer]
		if !known {
			name, ordered := replay.ListenerOf(g.Consumer, func(consumer string) bool { return has[consumer] })
			if i, known = row["gone "+name]; !known {
				i = len(rows)
				rows, row["gone "+name] = append(rows,
					ListenerRow{Listener: &replay.Listener{Name: name, Ordered: ordered}, Gone: true}), i
			}
		}
		rows[i].Missed = rows[i].Missed.With(g.Missed)
	}
	return rows
}

func writeListeners(w io.Writer, rows []ListenerRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tLAG\tUNACKED\tREDELIVERED\tRETRIES\tLETTERS\tLAST ACTIVE\tMISSED")
	for _, l := range rows {
		name, last := l.Name, "never"
		if l.Ordered {
			name += " (ordered)"
		}
		if l.Gone {
			name += " (gone)"
		}
		if !l.PausedUntil.IsZero() {
			name += " (paused until " + l.PausedUntil.Format(time.RFC3339) + ")"
		}
		switch {
		case !l.Last.IsZero():
			last = l.Last.UTC().Format(time.RFC3339)
		case l.Used:
			last = "before the bus started"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", name, l.Lag, l.Unacked, l.Redelivered, l.Retries, l.Letters,
			last, describeMissed(l.Missed))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return writeCopies(w, rows)
}

// writeCopies writes how far copies are behind, if there are any.
func writeCopies(w io.Writer, rows []ListenerRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range rows {
		if len(l.Copies) > 0 {
			fmt.Fprintln(t, "\nCOPIES\tOF\tBEHIND")
		}
		for _, c := range l.Copies {
			fmt.Fprintf(t, "%s\t%s\t%s\n", c.Copies, c.Source, c.Behind())
		}
	}
	return t.Flush()
}

func describeMissed(m *missed.Missed) string {
	if m == nil {
		return "-"
	}
	text := fmt.Sprintf("%s events since %s: the log was %s", m.Count(), m.Since.Format(time.RFC3339), m.Reason)
	switch m.Reason {
	case missed.Expired:
		text = fmt.Sprintf("%s events since %s, which the log has removed", m.Count(), m.Since.Format(time.RFC3339))
	case missed.Removed:
		text = fmt.Sprintf("%s events since %s, which somebody has removed from the log", m.Count(),
			m.Since.Format(time.RFC3339))
	}
	switch {
	case !m.Repaired.IsZero():
		text += ", repaired " + m.Repaired.Format(time.RFC3339)
	case !m.Confirmed.IsZero():
		text += ", confirmed " + m.Confirmed.Format(time.RFC3339)
	}
	return text
}

// ListenerName asks for a listener.
type ListenerName struct {
	Name string `arg:"" help:"Name of the listener."`
}

// ListenerConfirm has the belfry on the bus record that what a listener has missed is dealt with.
var ListenerConfirm = Operation[ListenerName, none, none]{
	Name: "listener confirm", Help: "Confirm that what a listener has missed is dealt with.", Bus: Connected,
	Prints: PrintText, Run: func(ctx context.Context, at *Place, q ListenerName, _ func(none)) (*none, error) {
		consumers := []string{q.Name}
		for p := range event.Partitions {
			consumers = append(consumers, fmt.Sprintf("%s-%d", q.Name, p))
		}
		asking, done := at.Bus.UntilDenied(ctx, missed.SubjectConfirm)
		defer done()
		return nil, missed.Confirm(asking, at.Bus.Conn(), consumers)
	},
	Text: func(w io.Writer, q ListenerName, _ *none) error {
		_, err := fmt.Fprintf(w, "what %s has missed is confirmed to be dealt with\n", q.Name)
		return err
	},
}

// ListenerPosition asks for another position of a listener.
type ListenerPosition struct {
	ListenerName
	From string `required:"" help:"A sequence, a time (RFC 3339, or 36h for ago), all, or new, which skips pending events." placeholder:"PLACE"`

	from eventlog.From // by Valid
}

// Valid implements checked.
func (q *ListenerPosition) Valid() (err error) {
	q.from, err = eventlog.ParseFrom(q.From)
	return err
}

// ListenerReset moves a listener, and returns its new position.
var ListenerReset = Operation[ListenerPosition, uint64, none]{
	Name: "listener reset", Help: "Restart a listener at another position in the log.", Bus: Permitted,
	Prints: PrintText,
	Run: func(ctx context.Context, at *Place, q ListenerPosition, _ func(none)) (*uint64, error) {
		sequence, err := replay.Reset(ctx, at.Bus.JetStream(), q.Name, q.from)
		return &sequence, err
	},
	Text: func(w io.Writer, q ListenerPosition, sequence *uint64) error {
		_, err := fmt.Fprintf(w, "%s reads the log from sequence %d on\n", q.Name, *sequence)
		return err
	},
}
