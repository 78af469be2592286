// Package notices informs users of events of their accounts, by mail.
package notices

import (
	"log/slog"

	"belfry/internal/baseurl"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/texts"
)

// Notices sends notices.
type Notices struct {
	DB    *record.Stores
	Log   *slog.Logger
	Base  baseurl.URL
	Email *post.Email // nil without login by e-mail

	Languages *texts.Catalog

	Post     *post.Post
	Sessions *sessions.Sessions
}
