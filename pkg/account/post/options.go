package post

import (
	"time"

	"belfry/pkg/mail"
)

// Email configures registration and login by e-mail.
type Email struct {
	PostValidation bool // users are created before their address is validated
	SkipValidation bool // no validation mail is sent at all
	UniformErrors  bool // an unknown login is reported like a wrong password

	TokenTTL     time.Duration // of the token in a validation mail
	RecoveryTTL  time.Duration // of the token in a recovery mail
	MailInterval time.Duration // minimum between two mails to one address

	From                        string
	Sender                      mail.Sender
	Validation, Recovery, Taken *mail.Templates

	Change, Undo *mail.Templates // of a change of address: to the new one, and to the old one

	Login   MailLogin // without a password
	Notices map[Notice]*mail.Templates
}

// Notice is a kind of mail about an event of the user's account. It has no token.
type Notice string
