package sessions

import (
	"belfry/pkg/errs"
)

// DeletedError is for those who have proven who they are.
func DeletedError() error {
	return errs.Wrap(ErrDisabled, errs.Denied, "this account is being deleted, as its user has asked")
}
