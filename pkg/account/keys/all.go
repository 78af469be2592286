package keys

import (
	"context"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Order is an order of the API keys of all users.
type Order string

// The orders.
const (
	ByUse    Order = "unused"  // those that were never used, then the least recently used first
	ByRecent Order = "recent"  // the most recently used first
	ByExpiry Order = "expires" // those that expire next, and those that never do last
)

// OfUser is an API key with its user.
type OfUser struct {
	Info
	User    string // the uuid
	Expired bool
}

// All returns a page of the API keys of all users, and where the next one begins; nil after the last. Keys that have
// ended with all sessions of their user are left out, so a page may be short. Invalid for another order.
func (s *Keys) All(ctx context.Context, order Order, after []byte, limit int) (page []OfUser, next []byte, err error) {
	ctx = record.AsService(ctx, "")
	q := store.ByKey{Index: record.KeysByUse, After: after, Limit: limit}
	switch order {
	case ByUse:
	case ByRecent:
		q.Descending = true
	case ByExpiry:
		q.Index = record.KeysByExpiry
	default:
		return nil, nil, errs.New(errs.Invalid, "sort: expected %s, %s or %s", ByUse, ByRecent, ByExpiry)
	}
	found, err := s.DB.Sessions.Store.ListByKey(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	users, now := map[string]record.User{}, s.DB.Now()
	for _, stored := range found.Objects {
		key, err := s.DB.Sessions.Of(stored)
		if err != nil {
			return nil, nil, err
		}
		user, known := users[key.User]
		if !known {
			if user, err = s.DB.Users.Read(ctx, key.User); err != nil && !errors.Is(err, errs.NotFound) {
				return nil, nil, err
			}
			users[key.User] = user
		}
		if key.IsKey() && user.UUID != "" && user.Epoch == key.Epoch {
			page = append(page, OfUser{Info: keyInfo(key), User: key.User, Expired: !now.Before(key.Expires)})
		}
	}
	return page, found.Next, nil
}
