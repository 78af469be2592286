package policy

import (
	"errors"
	"math"
	"sync/atomic"

	"belfry/pkg/errs"
)

// budgetCost is the cost limit of all rules of one request, in the units of costLimit:
// three evaluations at their limit.
const budgetCost = 3 * costLimit

// Budget limits the total cost of the rules of one request: one evaluation is bounded by
// itself, but a list evaluates a rule for each object, and a write again when another
// write came first. A nil Budget bounds nothing. It is safe for concurrent use.
type Budget struct {
	limit uint64
	spent atomic.Uint64
}

// NewBudget returns the budget of a request.
func NewBudget() *Budget { return &Budget{limit: budgetCost} }

// NewMeter returns a budget without a limit, for callers that limit the cost themselves: see Spent.
func NewMeter() *Budget { return &Budget{limit: math.MaxUint64} }

// Spent returns the cost of the rules so far.
func (b *Budget) Spent() uint64 { return b.spent.Load() }

// ErrBudget is in the Limited of a rule that is not evaluated, because earlier rules have
// cost as much as a request may.
var ErrBudget = errors.New("the rules of the request have cost too much")

// Check returns Limited, with ErrBudget, when the budget is spent.
func (b *Budget) Check() error {
	if b == nil || b.spent.Load() < b.limit {
		return nil
	}
	return errs.Wrap(ErrBudget, errs.Limited,
		"the rules that decide about this request take too long to evaluate on these objects: ask for fewer at once, "+
			"or try again")
}

// spend adds the cost of an evaluation, nil when it is unknown.
func (b *Budget) spend(cost *uint64) {
	if b != nil && cost != nil {
		b.spent.Add(*cost)
	}
}
