// Package mails is the method by which the code or the link of a mail proves a user's identity.
package mails

import (
	"belfry/internal/baseurl"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
)

// Method mails codes and links, and verifies them.
type Method struct {
	DB      *record.Stores
	Guesses *guess.Guesses
	Base    baseurl.URL
	Email   *post.Email // nil without login by e-mail

	Links *links.Flow
	Uses  *once.Uses
	Post  *post.Post
}
