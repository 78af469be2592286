package post

import (
	"belfry/pkg/errs"
)

// RequireEmail reports NotFound when login by e-mail is not configured.
func (s *Post) RequireEmail() error {
	if s.Email == nil {
		return errs.New(errs.NotFound, "login by e-mail is not configured")
	}
	return nil
}
