package command

import (
	"context"
	"os"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// Reloaded is what a reload did.
type Reloaded struct {
	File     string   `json:"file"`               // the configuration
	Changed  []string `json:"changed,omitempty"`  // keys that changed, and keys of files whose content did; none: nothing was done
	Building []string `json:"building,omitempty"` // indexes that are being built in the background, as Books.user; lists that need one are refused until then
	Refused  []string `json:"refused,omitempty"`  // problems because of which nothing was changed
}

// Reload has the process that serves a data folder read its configuration again. Errors: Invalid when that refuses
// it, with its problems; Unavailable when nobody serves.
func Reload(ctx context.Context, folder string) (*Reloaded, error) {
	if _, err := os.Stat(folder); err != nil {
		return nil, errs.New(errs.Invalid, "there is no data folder %s; check --config and --data", folder)
	}
	h, err := hold.HolderOf(folder)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, errs.New(errs.Unavailable, "no belfry serves the data folder %s: nothing is to be reloaded", folder)
	case h.Control == "":
		return nil, errs.New(errs.Unavailable, "the data folder %s is in use by %s, which does not serve; if it is starting or stopping, try again", folder, h)
	}
	r, err := hold.Ask[Reloaded](ctx, *h, "/reload", struct{}{})
	if err == nil && len(r.Refused) > 0 {
		return nil, errs.New(errs.Invalid, "%s has not reloaded its configuration, and serves with the one before:\n%s", h, strings.Join(r.Refused, "\n"))
	}
	return r, err
}
