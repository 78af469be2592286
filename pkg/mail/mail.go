// Package mail sends mails to an SMTP server, or writes them to a folder during
// development, and renders their texts from templates.
//
// A mail may contain a secret, such as the token of a link. So no error of this package quotes the texts of a
// mail or the password. If a server's reply contains a link or a part of a secret, the error has only its code.
//
// github.com/wneessen/go-mail composes the messages and speaks SMTP. This package uses
// its smtp.Client instead of its Client, for three reasons. Client reports an error for
// an accepted mail if the RSET after it fails, so the mail would be sent again. It does
// not stop when its context ends after dialing. It does not say at which command a
// connection failed, which decides whether the error is permanent and what may be logged.
package mail

import (
	"context"
	"time"
)

// Message is one mail to one recipient. It needs a Text, an HTML or both, in
// which case the reader's program chooses.
type Message struct {
	// ID becomes the Message-ID. Repeated attempts at the same mail use the same
	// ID, so that receivers detect duplicates. 1 to 200 bytes, where all but
	// letters, digits and -_~ count three.
	ID      string
	From    string // an address, optionally with a name: Ada <ada@example.com>
	To      string // an address without a name
	Subject string // one line
	Text    string
	HTML    string
	Date    time.Time // zero is now

	// Link is the link in the texts, a secret. It is not part of the mail: NewFolder hands it on
	// whole, since the encoding of a mail breaks it.
	Link string

	// Token is a secret in the texts: no error quotes a reply of the server that has a part of it.
	Token string
}

// Sender sends mails. It is safe for concurrent use.
type Sender interface {
	// Send returns once the receiver is responsible for the mail. A permanent
	// error is errs.Invalid: the mail can't be composed, or the server rejected
	// it permanently, for its recipient or its content. A transient one, which may need an administrator, is
	// errs.Unavailable, or errs.Canceled when ctx ended. After an error other than
	// errs.Invalid the mail may have been sent nevertheless.
	// AboutServer distinguishes those of all mails from those of this one.
	Send(ctx context.Context, m Message) error
}
