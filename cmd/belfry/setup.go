package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

type busCmd struct {
	Setup   busSetupCmd   `cmd:"" help:"Create the streams and consumers of belfry and its listeners, so that their users need no permission to."`
	Role    busRoleCmd    `cmd:"" help:"Print the permissions of a listener's user, for the configuration of a NATS server."`
	Account busAccountCmd `cmd:"" help:"Print the account of a listener's user, for the configuration of a NATS server."`
}

type busSetupCmd struct {
	busFlags
	Check    bool          `help:"Change nothing; exit with 1 when something is missing or differs."`
	Listener []string      `help:"Also set up this listener of your own; may be repeated. The flags below are for it, or for all of them." placeholder:"NAME"`
	Ordered  bool          `help:"The listener receives the events of an object one after the other."`
	Event    []string      `help:"It receives only events of this name, Store.Saved for instance; may be repeated." placeholder:"NAME"`
	Store    []string      `help:"It receives only events of this store; may be repeated." placeholder:"NAME"`
	Filter   []string      `help:"It receives this subject of the log, instead of events and stores; may be repeated." placeholder:"SUBJECT"`
	AckWait  time.Duration `help:"How long the bus waits for an acknowledgement or a heartbeat before it redelivers an event (${default})." default:"30s"`
	From     string        `help:"Start position of a listener that does not exist yet: all, new, a sequence, or a time as RFC 3339 or 36h for ago (${default})." default:"new" placeholder:"PLACE"`
}

// Run sets up the bus and prints what it found and did.
func (c *busSetupCmd) Run(ctx context.Context, s streams) error {
	specs, err := c.specs()
	if err != nil {
		return err
	}
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	for _, name := range c.Store {
		if loaded.Stores[name] == nil {
			return errs.New(errs.Invalid, "--store: %s has no store %q; it has %s", c.Config, name, strings.Join(slices.Sorted(maps.Keys(loaded.Stores)), ", "))
		}
	}
	var all []bus.Diff
	err = c.connect(ctx, func(b *bus.Client) (err error) {
		all, err = command.SetupBus(ctx, loaded, b, specs, c.Check)
		return err
	})
	if lacks := writeFindings(s.out, all); err == nil && lacks {
		return command.ErrFound
	}
	return err
}

// specs returns the listeners of the flags.
func (c *busSetupCmd) specs() ([]listener.Spec, error) {
	spec := listener.Spec{Ordered: c.Ordered, Stores: c.Store, Filters: c.Filter, AckWait: c.AckWait}
	for _, name := range c.Event {
		spec.Events = append(spec.Events, event.Name(name))
	}
	var err error
	if spec.Start, err = parseStart(c.From); err != nil {
		return nil, err
	}
	if len(c.Listener) == 0 && (c.Ordered || len(c.Event)+len(c.Store)+len(c.Filter) > 0) {
		return nil, errs.New(errs.Invalid, "--ordered, --event, --store and --filter are for a listener of your own: name it with --listener")
	}
	var all []listener.Spec
	for _, name := range c.Listener {
		spec.Name = name
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
		return listener.Start{}, errs.New(errs.Invalid, "--from: %q is no start position: expected all, new, a sequence, or a time such as 2026-11-21T04:05:06Z or 36h (ago)", text)
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

// writeRecreation writes the commands that create anew what has settings that the server does not change.
func writeRecreation(w io.Writer, all []bus.Diff) {
	for _, f := range all {
		if f.State != bus.Recreate {
			continue
		}
		fmt.Fprintf(w, "\n%s must be created anew, because the server does not change %s. As the admin of the bus:\n", f.What, strings.Join(f.Fixed, ", "))
		for _, line := range f.Commands {
			fmt.Fprintln(w, "  "+line)
		}
	}
}
