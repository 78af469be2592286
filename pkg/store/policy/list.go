package policy

// ListsApart reports whether lists have a rule of their own, so that another caller
// than one who may get an object may list it.
func (p *Policy) ListsApart() bool { return p.rules[List] != nil }
