package app

import (
	"slices"

	"belfry/pkg/app/plan"
)

// roles are those of a process; none: all.
type roles []string

// has reports whether a process has a role.
func (r roles) has(role string) bool { return len(r) == 0 || slices.Contains(r, role) }

// names returns the names of all roles that a process has.
func (r roles) names() []string {
	if len(r) == 0 {
		return plan.Roles()
	}
	return r
}
