package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"belfry/pkg/app"
	"belfry/pkg/verify"
)

type verifyCmd struct {
	configuration
	Repair bool `help:"Put right what differs."`
	JSON   bool `name:"json" help:"Report as JSON."`
}

// Run verifies; a difference that stays is exit code 1.
func (c *verifyCmd) Run(ctx context.Context, s streams) error {
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	r, err := app.Verify(ctx, loaded, c.Repair)
	if err != nil {
		return err
	}
	if c.JSON {
		e := json.NewEncoder(s.out)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		err = writeReport(s.out, r)
	}
	if err == nil && !r.Clean() {
		return errFound
	}
	return err
}

func writeReport(w io.Writer, r *verify.Report) error {
	for _, d := range r.Differences {
		what := d.Source + " " + d.UUID
		if d.UUID == "" {
			what = d.Detail
		} else if d.Detail != "" {
			what += " (" + d.Detail + ")"
		}
		fmt.Fprintf(w, "%-9s %s %s.%s: %s\n", d.Kind, d.Target, d.Holder, d.Array, what)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "... and %d more\n", r.More)
	}
	for _, o := range r.Overfull {
		fmt.Fprintf(w, "full      %s %s.%s: holds %d of %d objects (limit of the mapping)\n", o.Target, o.Holder, o.Array, o.Limit, o.Objects)
	}
	if r.Repaired > 0 {
		fmt.Fprintf(w, "repaired  %d\n", r.Repaired)
	}
	if r.Pending > 0 {
		fmt.Fprintf(w, "%d events are not yet on the bus; what they bring may still be to come\n", r.Pending)
	}
	_, err := fmt.Fprintf(w, "%d mappings, %d objects, %d targets, %d entries: %d differences\n",
		r.Mappings, r.Objects, r.Targets, r.Entries, len(r.Differences)+r.More)
	return err
}
