package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"belfry/internal/count"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/listener/deadletter"
)

// Letters asks for dead letters.
type Letters struct {
	Listener string `help:"Only dead letters of this listener." placeholder:"NAME"`
	Event    string `help:"Only events of this name, Store.Saved for instance." placeholder:"NAME"`
	Store    string `help:"Only events of this store." placeholder:"NAME"`
	UUID     string `name:"uuid" help:"Only events of this object." placeholder:"UUID"`
	Reason   string `help:"Only dead letters whose reason contains this." placeholder:"TEXT"`
	Since    string `help:"Only dead letters since a time (RFC 3339, or an age such as 36h)." placeholder:"TIME"`
}

func (f Letters) selection() (deadletter.Select, error) {
	s := deadletter.Select{Listener: f.Listener, Event: f.Event, Store: f.Store, UUID: f.UUID, Reason: f.Reason}
	var err error
	if f.Since != "" {
		s.Since, err = eventlog.ParseTime(f.Since)
	}
	return s, err
}

// Valid implements checked.
func (f Letters) Valid() error {
	_, err := f.selection()
	return err
}

// Letter is a dead letter, as commands print it.
type Letter struct {
	ID       uint64          `json:"id"`
	Listener string          `json:"listener"`
	Event    string          `json:"event"`
	Store    string          `json:"store"`
	UUID     string          `json:"uuid"`
	Reason   string          `json:"reason"`
	Attempts int             `json:"attempts"`
	Retries  int             `json:"retries"`
	Time     time.Time       `json:"time"`
	Sequence uint64          `json:"sequence"`
	Omitted  bool            `json:"omitted,omitempty"`
	Envelope json.RawMessage `json:"envelope,omitempty"`
	Raw      []byte          `json:"raw,omitempty"`
}

func viewOf(l *deadletter.Letter) Letter {
	v := Letter{
		ID: l.ID, Listener: l.Listener, Event: string(l.Event), Store: l.Store, UUID: l.UUID, Reason: l.Reason,
		Attempts: l.Attempts, Retries: l.Retries, Time: l.Time, Sequence: l.Sequence, Omitted: l.Omitted,
	}
	if json.Valid(l.Data) {
		v.Envelope = l.Data
	} else {
		v.Raw = l.Data
	}
	return v
}

// LetterList lists dead letters.
var LetterList = Operation[Letters, Rows[Letter], none]{
	Name: "dlq list", Help: "List the dead letters: events that a listener could not handle.", Bus: Permitted,
	Prints: PrintLines, Run: func(ctx context.Context, at *Place, q Letters, _ func(none)) (*Rows[Letter], error) {
		selected, err := q.selection()
		return rows(func(row func(Letter) error) error {
			return deadletter.List(ctx, at.Bus, selected, func(l *deadletter.Letter) error { return row(viewOf(l)) })
		}), err
	},
	Text: writeLetters,
}

// writeLetters writes a table; without a letter its head alone, which an error takes the place of.
func writeLetters(w io.Writer, _ Letters, all *Rows[Letter]) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tLISTENER\tEVENT\tSTORE\tUUID\tATTEMPTS\tTIME\tREASON")
	rows := 0
	err := (*all)(func(l Letter) error {
		rows++
		_, err := fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			l.ID, l.Listener, l.Event, l.Store, l.UUID, l.Attempts, l.Time.UTC().Format(time.RFC3339), l.Reason)
		return err
	})
	if err != nil && rows == 0 {
		return err
	}
	return errors.Join(err, t.Flush())
}

// LetterID asks for a dead letter.
type LetterID struct {
	ID uint64 `arg:"" help:"Number of the dead letter, as printed by list."`
}

// LetterShow reads a dead letter with its event.
var LetterShow = Operation[LetterID, Letter, none]{
	Name: "dlq show", Help: "Show a dead letter with its event.", Bus: Permitted, Prints: PrintText,
	Run: func(ctx context.Context, at *Place, q LetterID, _ func(none)) (*Letter, error) {
		l, err := deadletter.Get(ctx, at.Bus, q.ID)
		if err != nil {
			return nil, err
		}
		v := viewOf(l)
		return &v, nil
	},
	Text: func(w io.Writer, _ LetterID, l *Letter) error { return WriteReport(w, true, l, nil) },
}

// ChosenLetters are the dead letters that a command acts on.
type ChosenLetters struct {
	Letters
	ID  []uint64 `arg:"" optional:"" help:"Numbers of dead letters, as printed by list."`
	All bool     `help:"Every dead letter."`
}

// Valid implements checked.
func (f ChosenLetters) Valid() error {
	selected, err := f.selection()
	if err != nil {
		return err
	}
	switch given := !selected.Empty(); {
	case len(f.ID) > 0 && (given || f.All), given && f.All:
		return errs.New(errs.Invalid, "give either numbers, or flags that select dead letters, or --all")
	case len(f.ID) == 0 && !given && !f.All:
		return errs.New(errs.Invalid, "no dead letters selected: give their numbers, flags that select them, or --all")
	}
	return nil
}

// actedOn is what became of dead letters.
type actedOn struct {
	done, of int
	failed   error
}

// onLetters is an operation that acts on the dead letters that exist at the beginning: one that a listener returns in
// the meantime is not processed again.
func onLetters(name, help, done string,
	act func(context.Context, deadletter.Bus, uint64) error) *Operation[ChosenLetters, actedOn, none] {
	return &Operation[ChosenLetters, actedOn, none]{
		Name: name, Help: help, Bus: Permitted, Prints: PrintText,
		Run: func(ctx context.Context, at *Place, q ChosenLetters, _ func(none)) (*actedOn, error) {
			ids := q.ID
			if len(ids) == 0 {
				selected, err := q.selection()
				if err == nil {
					err = deadletter.List(ctx, at.Bus, selected,
						func(l *deadletter.Letter) error { ids = append(ids, l.ID); return nil })
				}
				if err != nil {
					return nil, err
				}
			}
			r := &actedOn{of: len(ids)}
			for _, id := range ids {
				err := act(ctx, at.Bus, id)
				if err == nil {
					r.done++
				}
				r.failed = errors.Join(r.failed, err)
				if err != nil && !errors.Is(err, errs.NotFound) && !errors.Is(err, errs.TooLarge) {
					break // the next one would fail, too
				}
			}
			return r, nil
		},
		Text: func(w io.Writer, _ ChosenLetters, r *actedOn) error {
			fmt.Fprintf(w, "%d of %s %s\n", r.done, count.Of(r.of, "dead letter"), done)
			return r.failed
		},
	}
}

// LetterRetry redelivers dead letters to their listeners, and LetterDrop deletes them.
var (
	LetterRetry = onLetters("dlq retry", "Redeliver dead letters to their listener.", "to be redelivered",
		deadletter.Retry)
	LetterDrop = onLetters("dlq drop", "Delete dead letters permanently.", "deleted", deadletter.Drop)
)
