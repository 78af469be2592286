package sessions

import (
	"slices"
	"time"
)

// DefaultCookie is the name of the cookie of sessions, unless Options has another one.
const DefaultCookie = "belfry"

// FormerCookie is a former name of the sessions' cookie.
type FormerCookie struct {
	Name  string
	Until time.Time // when it is no longer read, because all its sessions have ended
}

// CookieNames returns the name of the sessions' cookie, followed by the former names that are still read.
func (s *Sessions) CookieNames() []string {
	names := []string{s.Cookie}
	for _, f := range s.Former {
		if s.DB.Now().Before(f.Until) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}
