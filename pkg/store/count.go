package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// CountMode is how a list counts the objects that match; "" does not.
type CountMode string

// The modes of counting.
const (
	CountExact    CountMode = "exact"
	CountEstimate CountMode = "estimate"
)

// The accuracies of a count. One whose work reached a limit is AtLeast.
const (
	Exact    = "exact"
	AtLeast  = "atLeast"
	Estimate = "estimate"
)

// Count is how many objects match that the caller may see.
type Count struct {
	Value    int64
	Accuracy string
}

// The most keys that one count reads where keys can be counted. Objects are read up to the limits of a list.
const (
	maxExactKeys    = 100_000
	maxEstimateKeys = 10_000
)

// estimateTimeout is how long the estimate of a backend may take: one that it has is returned at once.
const estimateTimeout = 200 * time.Millisecond

// ParseCount returns the mode that a request names.
func ParseCount(text string) (CountMode, error) {
	if mode := CountMode(text); mode == CountExact || mode == CountEstimate {
		return mode, nil
	}
	return "", errs.New(errs.Invalid, "count: exact or estimate is expected")
}

// counting returns a scan of all that the list has.
func (p *listPage) counting() *listScan {
	of := &p.scan
	rule := listRule{scope: of.rule.scope, selection: of.rule.selection}
	c := &listScan{lister: of.lister, call: of.call, plan: of.plan, rule: rule, limit: MaxPage, keys: of.keys,
		most: of.most}
	if p.backward {
		c.plan = p.reversePlan
	}
	c.open()
	return c
}

// count counts the objects of the list. If the rule is evaluated for each object, every mode counts only the objects
// for which it holds: any other number would reveal objects that the caller may not see.
func (l *listScan) count(ctx context.Context, mode CountMode) (*Count, error) {
	if l.rule.perObject() {
		return l.countObjects(ctx)
	}
	limit := maxExactKeys
	if mode == CountEstimate {
		if n, ok := l.estimate(ctx); ok {
			return &Count{n, Estimate}, nil
		}
		limit = maxEstimateKeys
	}
	limit = min(limit, cmp.Or(l.keys, limit))
	counter, ok := l.lister.driver.(driver.KeyCounter)
	switch {
	case !ok || !l.plan.Countable():
		return l.countObjects(ctx)
	case l.plan.Intersects():
		return l.countCommon(ctx, counter, limit)
	default:
		return l.countKeys(ctx, counter, limit)
	}
}

// estimate returns the number of all objects as the backend has it; false if not all are counted, or it is not known at
// once.
func (l *listScan) estimate(ctx context.Context) (int64, bool) {
	reads := l.plan.Reads()
	if len(reads) != 1 || !l.plan.Countable() {
		return 0, false
	}
	if _, scan := reads[0].Query(); !scan {
		return 0, false
	}
	return l.lister.size(ctx)
}

// size returns the number of all objects as the backend has it, which may be an estimate; false if it is not known at
// once.
func (l *lister) size(ctx context.Context) (int64, bool) {
	ctx, cancel := context.WithTimeout(ctx, estimateTimeout)
	defer cancel()
	n, _, err := l.driver.Count(ctx)
	return n, err == nil
}

// countKeys counts the keys of all ranges, up to a limit.
func (l *listScan) countKeys(ctx context.Context, counter driver.KeyCounter, limit int) (*Count, error) {
	total := 0
	for _, r := range l.plan.Reads() {
		q, _ := r.Query()
		n, all, err := counter.CountKeys(ctx, q, max(limit-total, 0))
		if err != nil {
			return nil, err
		}
		if !all {
			return &Count{int64(limit), AtLeast}, nil
		}
		total += n
	}
	return &Count{int64(total), Exact}, nil
}

// countCommon counts what ranges have in common with other indexes by comparing their keys, as many as the limit for
// all ranges.
func (l *listScan) countCommon(ctx context.Context, counter driver.KeyCounter, limit int) (*Count, error) {
	count, reads := &Count{0, Exact}, l.plan.Reads()
	for _, r := range reads {
		n, all, err := l.countRead(ctx, counter, r, limit/len(reads))
		if err != nil {
			return nil, err
		}
		if count.Value += int64(n); !all {
			count.Accuracy = AtLeast
		}
	}
	return count, nil
}

// countRead counts what one range has in common with other indexes, if it is intersected with some. If all is false
// there are at least n.
func (l *listScan) countRead(
	ctx context.Context, counter driver.KeyCounter, r query.Read, limit int,
) (n int, all bool, err error) {
	q, _ := r.Query()
	if conditions := r.Conditions(); len(conditions) > 0 {
		return l.lister.driver.(driver.Intersecter).CountCommon(ctx, q, conditions, limit)
	}
	if n, all, err = counter.CountKeys(ctx, q, limit); !all {
		n = limit
	}
	return n, all, err
}

// countObjects counts by reading objects.
func (l *listScan) countObjects(ctx context.Context) (*Count, error) {
	count := &Count{0, Exact}
	for {
		found, next, err := l.find(ctx, 0)
		switch {
		case errors.Is(err, policy.ErrBudget), err == nil && found == limitReached:
			count.Accuracy = AtLeast
			return count, nil
		case err != nil:
			return nil, err
		case found == endOfList:
			return count, nil
		case found == listedObject:
			count.Value++
		}
		l.pop(next.record())
	}
}
