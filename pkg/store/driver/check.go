package driver

import "belfry/pkg/errs"

// Check reports errs.Internal for a spec that no backend can open. Such a spec
// is a mistake of the program, not of a user.
func (s *Spec) Check() error {
	if s.Name == "" {
		return errs.New(errs.Internal, "a store needs a name")
	}
	seen := make(map[string]bool)
	for _, ix := range s.Indexes {
		if ix.Name == "" || seen[ix.Name] || ix.Parts < 1 || ix.Parts > 4 {
			return errs.New(errs.Internal, "the index %q of the store %s needs a unique name and 1 to 4 parts", ix.Name,
				s.Name)
		}
		seen[ix.Name] = true
	}
	if len(s.Indexes) > 0 && s.Keys == nil {
		return errs.New(errs.Internal, "the store %s has indexes but no function that computes their keys", s.Name)
	}
	return nil
}

// Check reports errs.Internal for a query that its index does not support. ix is
// the index that the query names, or the zero Index if it does not exist.
func (q *Query) Check(ix Index) error {
	ranged := q.From != nil || q.To != nil
	switch {
	case ix.Name == "":
		return errs.New(errs.Internal, "the store has no index %q", q.Index)
	case len(q.Equal) > ix.Parts || len(q.Equal) == ix.Parts && ranged:
		return errs.New(errs.Internal, "a query has more parts than the index %q, which has %d", q.Index, ix.Parts)
	case ix.Multi && len(q.Equal) < ix.Parts:
		return errs.New(errs.Internal,
			"a query of the index %q, in which a record may have several keys, needs all %d parts", q.Index, ix.Parts)
	}
	return CheckLimit(q.Limit)
}

// Check reports errs.Internal for a condition whose keys don't end with the parts after Query.Equal. ix and of are the
// indexes that the condition and the query name, or the zero Index for one that does not exist.
func (c *KeyCondition) Check(ix Index, q Query, of Index) error {
	if ix.Name == "" {
		return errs.New(errs.Internal, "the store has no index %q", c.Index)
	}
	for _, parts := range c.Equal {
		if len(parts) < 1 || ix.Parts-len(parts) != of.Parts-len(q.Equal) {
			return errs.New(errs.Internal,
				"a condition on the index %q needs as many parts after those that are given as the query of %q",
				c.Index, q.Index)
		}
	}
	return nil
}

// CheckLimit reports errs.Internal for a page limit below 1.
func CheckLimit(limit int) error {
	if limit < 1 {
		return errs.New(errs.Internal, "a page needs a limit of at least 1")
	}
	return nil
}
