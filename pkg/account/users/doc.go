// Package users creates users with their first identity.
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
