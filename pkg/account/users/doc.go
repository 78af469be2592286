// Package users creates users with their first identity.
//
// # Two records without a transaction
//
// Create writes the ident first, which claims the identity, and then the user together with the event Register in one
// atomic write. A crash in between leaves an ident without a user. It does not block the address: the next registration
// adopts the ident and the uuid in it. The user's record is created only if absent, so of two concurrent adoptions one
// succeeds.
package users

import (
	"belfry/pkg/account/record"
	"belfry/pkg/store"
)

// Users creates users.
type Users struct {
	DB          *record.Stores
	Interceptor store.Interceptor // may be nil
}
