package mapping

import (
	"context"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Rest is what is left of a pass over the objects that name a source, and which of them are the next part. The zero
// Rest is a whole pass.
type Rest struct {
	After  []byte `json:"after"`           // a position in the index of the reference
	Until  string `json:"until,omitempty"` // the uuid of the last object of the part; "": of the pass
	Values string `json:"values"`          // of the source when the part before began, see store.Copies.Values
}

// Spread makes the copies in all objects that name a source match it, or in the next part of those that are left of a
// pass. It reads the source again for some objects at a time, so that the copies are those of its latest change. It
// returns what is left of the pass; nil for nothing.
//
// If the source has changed since the part before, nothing is left: the event of the change has begun another pass.
// But the part itself is always done, and consists of the same objects whenever its event is handled: a worker that had
// handled it before may have crashed after it had written an earlier value.
func (c *Copier) Spread(ctx context.Context, k *store.Copies, source string, from Rest) (left *Rest, err error) {
	ctx = withOrigin(ctx, event.OriginCopy)
	if err := backoff.Sleep(ctx, c.set.Store(k.Store).IndexLag()); err != nil {
		return nil, err
	}
	body, err := c.read(ctx, k, source)
	if err != nil {
		return nil, err
	}
	values := k.Values(body)
	p := part{Copier: c, copies: k, source: source, most: c.opts.Most(ctx)}
	after, err := p.spread(ctx, from)
	if err != nil || after == nil || from.After != nil && values != from.Values {
		return nil, err
	}
	left = &Rest{After: after, Values: values}
	left.Until, err = p.until(ctx, after)
	return left, err
}

// part is a part of a pass.
type part struct {
	*Copier
	copies *store.Copies
	source string
	most   int           // objects, about
	took   time.Duration // for the objects that got their copies last
}

func (p *part) page(ctx context.Context, at []byte) (store.LinkedPage, error) {
	return p.set.Store(p.copies.Store).LinkedFrom(ctx, p.copies.Reference, p.source, at, min(p.opts.Page, p.most))
}

// spread does the part, and returns where the next one begins; nil after the last one.
func (p *part) spread(ctx context.Context, from Rest) (after []byte, err error) {
	after = from.After
	for done := 0; ; {
		page, err := p.page(ctx, after)
		if err != nil {
			return nil, err
		}
		within := len(page.Objects)
		if from.Until != "" {
			within = 0
			for within < len(page.Objects) && page.Objects[within].UUID <= from.Until {
				within++
			}
		}
		if err := p.write(ctx, page.Objects[:within]); err != nil {
			return nil, err
		}
		if within < len(page.Objects) { // the part ends here
			if within > 0 {
				after = page.Positions[within-1]
			}
			return after, nil
		}
		if page.Next == nil {
			return nil, nil
		}
		after = page.Next
		if done += within; from.After == nil && done >= p.most {
			return after, nil
		}
	}
}

// write sets the copies of objects, some at once.
func (p *part) write(ctx context.Context, objects []store.Stored) error {
	for some := range slices.Chunk(objects, p.opts.Concurrency) {
		if err := p.opts.Pace(ctx, p.took); err != nil {
			return err
		}
		began := time.Now()
		if err := p.spreadPage(ctx, p.copies, p.source, some); err != nil {
			return err
		}
		p.took = time.Since(began)
	}
	return nil
}

// until returns the last object of the part that begins at a position; "" if it is the last part.
func (p *part) until(ctx context.Context, after []byte) (uuid string, err error) {
	for done := 0; ; {
		page, err := p.page(ctx, after)
		if err != nil || page.Next == nil {
			return "", err
		}
		after = page.Next
		if done += len(page.Objects); done >= p.most {
			return page.Objects[len(page.Objects)-1].UUID, nil
		}
	}
}
