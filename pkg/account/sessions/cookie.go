package sessions

import (
	"slices"
	"time"
)

// DefaultCookie is the name of the cookie of sessions, unless Options has another one.
const DefaultCookie = "belfry"

// FormerCookie is a name that the cookie of sessions had.
type FormerCookie struct {
	Name  string
	Until time.Time // when it is no longer read: no session is as old
}

// CookieNames returns the name of the cookie of sessions, and after it those by which it is read as well.
func (s *Sessions) CookieNames() []string {
	names := []string{s.Cookie}
	for _, f := range s.Former {
		if s.DB.Now().Before(f.Until) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}
