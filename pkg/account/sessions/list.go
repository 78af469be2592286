package sessions

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Info is a session, as its user sees it.
type Info struct {
	ID      string `json:"id"`
	Current bool   `json:"current"`
	Type    string `json:"type"`

	// Application is the configured redirect of the application that the session is of.
	Application string `json:"application,omitempty"`

	Created  string `json:"created"`
	LastUsed string `json:"lastUsed"`
	Expires  string `json:"expires"`
	Origin          // of the login

	Methods         []string `json:"methods,omitempty"` // by which the user has proven their identity
	AAL             int      `json:"aal"`
	AuthenticatedAt string   `json:"authenticatedAt"`
}

// List returns the sessions of the logged-in user, the oldest first.
func (s *Sessions) List(ctx context.Context, me *Session) ([]Info, error) {
	return s.ListOf(ctx, me.User, me.ID)
}

// ListOf returns the sessions of a user, the oldest first. current is the id of the session of the request.
func (s *Sessions) ListOf(ctx context.Context, user record.User, current string) ([]Info, error) {
	list := []Info{}
	for session, err := range s.AllOf(ctx, user) {
		if err != nil {
			return list, err
		}
		if session.IsKey() {
			continue
		}
		p := session.Proven()
		list = append(list, Info{
			Methods: p.Methods, AAL: p.AAL, AuthenticatedAt: record.Timestamp(p.At),
			ID: session.UUID, Current: session.UUID == current, Type: session.Provider,
			Application: session.Application, Created: session.Created,
			LastUsed: record.TimeText(session.LastUsed), Expires: record.TimeText(session.Expires),
			Origin: s.OriginOf(session.Address, session.UserAgent),
		})
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, nil
}

// AllOf iterates over the valid sessions and API keys of a user. It ends after the first error.
func (s *Sessions) AllOf(ctx context.Context, user record.User) iter.Seq2[record.Session, error] {
	return func(yield func(record.Session, error) bool) {
		for session, err := range s.DB.Sessions.Owned(record.AsService(ctx, user.UUID), user.UUID) {
			if err == nil && (!s.DB.Now().Before(session.Expires) || session.Epoch != user.Epoch) {
				continue
			}
			if !yield(session, err) {
				return
			}
		}
	}
}

// endExcessSessions ends the least recently used sessions beyond maxSessions.
func (s *Sessions) endExcessSessions(ctx context.Context, user record.User) error {
	var all []string // last use and id
	for session, err := range s.DB.Sessions.Owned(ctx, user.UUID) {
		if err != nil {
			return err
		}
		if !session.IsKey() {
			all = append(all, record.TimeText(session.LastUsed)+" "+session.UUID)
		}
	}
	slices.Sort(all)
	for ; len(all) > maxSessions; all = all[1:] {
		_, id, _ := strings.Cut(all[0], " ")
		if err := s.End(ctx, id, s.DB.AuditEnd(user.UUID, id, record.ReasonTooMany)); err != nil {
			return err
		}
	}
	return nil
}

// RevokeOwn ends a session of the logged-in user. NotFound if it is another user's.
func (s *Sessions) RevokeOwn(ctx context.Context, me *Session, id string) error {
	return s.Revoke(record.AsService(ctx, me.User.UUID), me.User.UUID, id)
}

// Revoke ends a session of a user. NotFound if it is another user's.
func (s *Sessions) Revoke(ctx context.Context, user, id string) error {
	_, err := s.OfUser(ctx, user, id, false)
	if errors.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "you have no session with this id")
	}
	if err != nil {
		return err
	}
	return s.End(ctx, id, s.DB.AuditEnd(user, id, record.ReasonRevoked))
}

// OfUser returns a session of a user, or an API key. NotFound if it is another user's.
func (s *Sessions) OfUser(ctx context.Context, user, id string, key bool) (record.Session, error) {
	if !object.ValidUUID(id) {
		return record.Session{}, errs.New(errs.NotFound, "the id is not valid")
	}
	session, err := s.DB.Sessions.Read(ctx, id)
	if err == nil && (session.User != user || session.IsKey() != key) {
		err = errs.New(errs.NotFound, "the session is another user's, or of another kind")
	}
	return session, err
}

// EndAll ends all sessions and API keys of a user, and the tokens of recovery mails, atomically, including those that
// an index does not find yet. NotFound.
func (s *Sessions) EndAll(ctx context.Context, uuid string) (store.Stored, error) {
	return s.ChangeUser(ctx, uuid, func(user *record.User) error {
		user.EndSessions()
		user.Publish(s.DB.Audit(event.AuthSessionsEnded, user.UUID, event.AuthDetails{Reason: record.ReasonRevoked}))
		return nil
	})
}
