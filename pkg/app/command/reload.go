package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

// Reloaded is what a reload did.
type Reloaded struct {
	File     string   `json:"file"`               // the configuration
	Changed  []string `json:"changed,omitempty"`  // keys that changed, and keys of files whose content did; none: nothing was done
	Building []string `json:"building,omitempty"` // indexes that are being built in the background, as Books.user; lists that need one are refused until then
	Refused  []string `json:"refused,omitempty"`  // problems because of which nothing was changed
}

// refusal is Invalid with the problems because of which a process has changed nothing.
func (r *Reloaded) refusal(of hold.Holder) error {
	if len(r.Refused) == 0 {
		return nil
	}
	return errs.New(errs.Invalid, "%s has not reloaded its configuration, and serves with the one before:\n%s", of, strings.Join(r.Refused, "\n"))
}

// Reload has the process that serves read its configuration again. Errors: Invalid when that refuses it, with its
// problems; Unavailable when nobody serves.
var Reload = Operation[none, Reloaded, none]{
	Name: "reload", Served: "nothing is to be reloaded",
	Run:      func(ctx context.Context, at *Place, _ none, _ func(none)) (*Reloaded, error) { return at.Reload(ctx) },
	Commands: []Command[none, Reloaded]{{Words: "reload", Help: "Have the belfry that serves read its configuration again.", Flags: &reloadFlags{}}},
}

type reloadFlags struct{}

// Request implements Flags.
func (*reloadFlags) Request(context.Context, Streams) (in none, err error) { return in, nil }

// Print implements Flags.
func (*reloadFlags) Print(s Streams, r *Reloaded) error {
	text := r.File + ": reloaded; nothing has changed\n"
	if len(r.Changed) > 0 {
		text = r.File + ": reloaded; these keys changed:\n  " + strings.Join(r.Changed, "\n  ") + "\n"
	}
	_, err := io.WriteString(s.Out, text)
	if err == nil && len(r.Building) > 0 {
		_, err = fmt.Fprintf(s.Err, "these indexes are being built in the background; lists that need one are refused until it is complete: %s\n",
			strings.Join(r.Building, ", "))
	}
	return err
}

// Examined is what the process that serves knows of itself, for `belfry doctor`.
type Examined struct {
	Version  string           `json:"version"`
	Findings []doctor.Finding `json:"findings"`
}

// Examine asks the process that serves how it is.
var Examine = Operation[none, Examined, none]{
	Name: "doctor", Served: "there is nobody to ask",
	Reads: func(none) bool { return true },
	Run:   func(ctx context.Context, at *Place, _ none, _ func(none)) (*Examined, error) { return at.Examine(ctx) },
}
