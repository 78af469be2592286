package open

import (
	"context"

	"belfry/pkg/app/part"
	"belfry/pkg/mapping/fill"
)

// Refill starts a filler for another configuration once the previous one has ended.
func Refill(ctx context.Context, before *fill.Filler, o fill.Options) (*fill.Filler, part.Change, error) {
	ready := make(chan struct{})
	o.Ready = ready
	before.Hold()
	f, err := fill.Start(ctx, o)
	if err != nil {
		before.Resume()
		return nil, part.Change{}, err
	}
	cancel := func() {
		f.Close()
		before.Resume()
	}
	return f, part.Change{Apply: before.Yield, Cancel: cancel, Settle: func(context.Context) {
		before.Close()
		close(ready)
	}}, nil
}
