package app

import "slices"

// has reports whether this process has a role; it has all if none was given.
func (a *App) has(role string) bool { return len(a.roles) == 0 || slices.Contains(a.roles, role) }
