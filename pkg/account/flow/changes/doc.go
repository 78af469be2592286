// Package changes records changes of the addresses of accounts, and of the rights to undo them.
package changes

import (
	"belfry/pkg/account/guess"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
)

// Changes records changes of addresses.
type Changes struct {
	DB      *record.Stores
	Guesses *guess.Guesses

	Notices *notices.Notices
	Uses    *once.Uses
	Post    *post.Post
}
