// Package recoverycodes is the method by which a recovery code replaces a second factor, once.
package recoverycodes

import (
	"belfry/pkg/account/method"
	"belfry/pkg/account/record"
)

// Method verifies recovery codes.
type Method struct {
	method.Unasked

	DB *record.Stores
}
