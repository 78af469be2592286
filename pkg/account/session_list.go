package account

import (
	"context"
	"slices"
	"strings"

	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// SessionInfo is a session as its user sees it.
type SessionInfo struct {
	ID      string `json:"id"`
	Current bool   `json:"current"`
	Type    string `json:"type"`

	// Application is the configured redirect of the application that the session is of.
	Application string `json:"application,omitempty"`

	Created  string `json:"created"`
	LastUsed string `json:"lastUsed"`
	Expires  string `json:"expires"`
	Origin          // of the login

	Methods         []string `json:"methods,omitempty"` // by which the user has proven who they are
	AAL             int      `json:"aal"`
	AuthenticatedAt string   `json:"authenticatedAt"`
}

// listPage is the page size of a search.
const listPage = 200

// ListSessions returns the sessions of the user who is logged in, the oldest first.
func (s *Service) ListSessions(ctx context.Context, me *Session) ([]SessionInfo, error) {
	list := []SessionInfo{}
	err := s.sessionsOf(ctx, me.User, func(stored store.Stored, o object.Object) error {
		if isKey(o) {
			return nil
		}
		text := func(name string) string { t, _ := o.Text(name); return t }
		p := proofOf(o)
		list = append(list, SessionInfo{
			Methods: p.methods, AAL: p.aal, AuthenticatedAt: timestamp(p.at),
			ID: stored.UUID, Current: stored.UUID == me.ID, Type: text("type"), Application: text("application"), Created: text("created"),
			LastUsed: text("lastUsed"), Expires: text(fieldExpires), Origin: s.originOf(text("address"), text("userAgent")),
		})
		return nil
	})
	slices.SortFunc(list, func(a, b SessionInfo) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, err
}

// sessionsOf calls each with the valid sessions of a user.
func (s *Service) sessionsOf(ctx context.Context, user store.Stored, each func(store.Stored, object.Object) error) error {
	owner, err := user.Object()
	if err != nil {
		return err
	}
	ctx = asService(ctx, user.UUID)
	return forEachOwned(ctx, s.sessions, user.UUID, func(stored store.Stored, o object.Object) error {
		if !s.now().Before(timeField(o, fieldExpires)) || epoch(o) != epoch(owner) {
			return nil
		}
		return each(stored, o)
	})
}

// endExcessSessions ends the least recently used sessions beyond maxSessions.
func (s *Service) endExcessSessions(ctx context.Context, user store.Stored) error {
	var all []string // last use and id
	err := forEachOwned(ctx, s.sessions, user.UUID, func(stored store.Stored, o object.Object) error {
		if isKey(o) {
			return nil
		}
		used, _ := o.Text("lastUsed")
		all = append(all, used+" "+stored.UUID)
		return nil
	})
	slices.Sort(all)
	for ; err == nil && len(all) > maxSessions; all = all[1:] {
		_, id, _ := strings.Cut(all[0], " ")
		err = s.endSession(ctx, id, s.auditEnd(user.UUID, id, reasonTooMany))
	}
	return err
}

// forEachOwned calls each with the objects of a store whose field user is a user.
func forEachOwned(ctx context.Context, in *store.Store, user string, each func(store.Stored, object.Object) error) error {
	for found, err := range in.Linked(ctx, fieldUser, user, listPage) {
		if err != nil {
			return err
		}
		o, err := found.Object()
		if err != nil {
			return err
		}
		if owner, _ := o.Text(fieldUser); owner != user {
			continue // the index lags
		}
		if err := each(found, o); err != nil {
			return err
		}
	}
	return nil
}

// RevokeSession ends a session of the user who is logged in. NotFound when it is
// not theirs.
func (s *Service) RevokeSession(ctx context.Context, me *Session, id string) error {
	return s.revoke(asService(ctx, me.User.UUID), me.User.UUID, id, false)
}
