package command

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/config"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// BusSetupRequest asks for the setup of a bus.
type BusSetupRequest struct {
	Check    bool          `help:"Change nothing; exit with 1 when something is missing or differs."`
	Listener []string      `help:"Also set up this listener of your own; may be repeated. The flags below are for it, or for all of them." placeholder:"NAME"`
	Ordered  bool          `help:"The listener receives the events of an object one after the other."`
	Event    []string      `help:"It receives only events of this name, Store.Saved for instance; may be repeated." placeholder:"NAME"`
	Store    []string      `help:"It receives only events of this store; may be repeated." placeholder:"NAME"`
	Filter   []string      `help:"It receives this subject of the log, instead of events and stores; may be repeated." placeholder:"SUBJECT"`
	AckWait  time.Duration `help:"How long the bus waits for an acknowledgement or a heartbeat before it redelivers an event (${default})." default:"30s"`
	From     string        `help:"Start position of a listener that does not exist yet: all, new, a sequence, or a time as RFC 3339 or 36h for ago (${default})." default:"new" placeholder:"PLACE"`
}

// busSetUp is what a setup has found and done, up to an error.
type busSetUp struct {
	found  []bus.Diff
	failed error
}

// BusSetup sets up the bus.
var BusSetup = Operation[BusSetupRequest, busSetUp, none]{
	Name: "bus setup",
	Help: "Create the streams and consumers of belfry and its listeners, so that their users need no permission to.",
	Bus:  Connected, Prints: PrintText, Check: func(c *config.Config, q BusSetupRequest) error {
		for _, name := range q.Store {
			if c.Stores[name] == nil {
				return errs.New(errs.Invalid, "--store: %s has no store %q; it has %s", c.File(), name,
					strings.Join(c.KnownStores(), ", "))
			}
		}
		return nil
	},
	Run: func(ctx context.Context, at *Place, q BusSetupRequest, _ func(none)) (*busSetUp, error) {
		specs, err := q.specs()
		if err != nil {
			return nil, err
		}
		r := &busSetUp{}
		r.found, r.failed = SetupBus(ctx, at.Config, at.Bus, specs, q.Check)
		return r, nil
	},
	Text: func(w io.Writer, _ BusSetupRequest, r *busSetUp) error {
		if lacks := writeFindings(w, r.found); r.failed == nil && lacks {
			return ErrFound
		}
		return r.failed
	},
}

// Valid implements checked.
func (q BusSetupRequest) Valid() error {
	_, err := q.specs()
	return err
}

// specs returns the listeners of the flags.
func (q BusSetupRequest) specs() ([]listener.Spec, error) {
	spec := listener.Spec{Ordered: q.Ordered, Stores: q.Store, Filters: q.Filter, AckWait: q.AckWait}
	for _, name := range q.Event {
		spec.Events = append(spec.Events, event.Name(name))
	}
	var err error
	if spec.Start, err = parseStart(q.From); err != nil {
		return nil, err
	}
	if len(q.Listener) == 0 && (q.Ordered || len(q.Event)+len(q.Store)+len(q.Filter) > 0) {
		return nil, errs.New(errs.Invalid,
			"--ordered, --event, --store and --filter are for a listener of your own: name it with --listener")
	}
	var all []listener.Spec
	for _, name := range q.Listener {
		spec.Name = name
		if err := listener.CheckSetup(spec); err != nil {
			return nil, err
		}
		all = append(all, spec)
	}
	return all, nil
}

// parseStart parses the start position of a listener.
func parseStart(text string) (listener.Start, error) {
	switch text {
	case "new":
		return listener.StartNew(), nil
	case "all":
		return listener.StartAll(), nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return listener.StartAtSequence(max(n, 1)), nil
	}
	at, err := eventlog.ParseTime(text)
	if err != nil {
		return listener.Start{}, errs.New(errs.Invalid, "--from: %q is no start position: expected all, new, a "+
			"sequence, or a time such as 2026-11-21T04:05:06Z or 36h (ago)", text)
	}
	return listener.StartAtTime(at), nil
}

// writeFindings writes a line for each difference and a summary, and reports whether something is missing.
func writeFindings(w io.Writer, all []bus.Diff) (lacks bool) {
	if len(all) == 0 {
		return false
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	count := map[bus.State]int{}
	for _, f := range all {
		count[f.State]++
		lacks = lacks || f.NeedsSetup()
		what := string(f.State)
		if f.Detail != "" {
			what += ": " + f.Detail
		}
		fmt.Fprintf(t, "%s\t%s\n", f.What, what)
	}
	_ = t.Flush()
	var sum []string
	for _, state := range []bus.State{bus.InSync, bus.Created, bus.Updated, bus.Missing, bus.Drifted, bus.Recreate} {
		if n := count[state]; n > 0 {
			sum = append(sum, fmt.Sprintf("%d %s", n, state))
		}
	}
	fmt.Fprintln(w, strings.Join(sum, ", "))
	writeRecreation(w, all)
	return lacks
}

// writeRecreation writes the commands that recreate what has settings that the server does not change.
func writeRecreation(w io.Writer, all []bus.Diff) {
	for _, f := range all {
		if f.State != bus.Recreate {
			continue
		}
		fmt.Fprintf(w, "\n%s must be created anew, because the server does not change %s. As the admin of the bus:\n",
			f.What, strings.Join(f.Fixed, ", "))
		for _, line := range f.Commands {
			fmt.Fprintln(w, "  "+line)
		}
	}
}
