package serving

import (
	"slices"

	"belfry/pkg/app/plan"
)

// Roles are the roles of a process; none: all.
type Roles []string

// Has reports whether a process has a role.
func (r Roles) Has(role string) bool { return len(r) == 0 || slices.Contains(r, role) }

// Names returns the names of all roles that a process has.
func (r Roles) Names() []string {
	if len(r) == 0 {
		return plan.Roles()
	}
	return r
}
