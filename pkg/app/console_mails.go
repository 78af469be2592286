package app

import (
	"belfry/pkg/mail"
)

// writtenMails are the mails in the folder of a mailer of type file.
type writtenMails string

// List implements console.Mails.
func (folder writtenMails) List(limit int) ([]mail.Written, error) {
	return mail.List(string(folder), limit)
}

// Read implements console.Mails.
func (folder writtenMails) Read(name string) (mail.Written, error) {
	return mail.Read(string(folder), name)
}
