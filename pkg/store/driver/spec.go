package driver

import "belfry/pkg/errs"

// Check reports a spec that no backend can open, which is a fault of whoever
// made it: errs.Internal.
func (s *Spec) Check() error {
	if s.Name == "" {
		return errs.New(errs.Internal, "a store needs a name")
	}
	seen := make(map[string]bool)
	for _, ix := range s.Indexes {
		if ix.Name == "" || seen[ix.Name] || ix.Parts < 1 || ix.Parts > 4 {
			return errs.New(errs.Internal, "the index %q of the store %s needs a name of its own and 1 to 4 parts", ix.Name, s.Name)
		}
		seen[ix.Name] = true
	}
	if len(s.Indexes) > 0 && s.Keys == nil {
		return errs.New(errs.Internal, "the store %s has indexes and no function for their keys", s.Name)
	}
	return nil
}
