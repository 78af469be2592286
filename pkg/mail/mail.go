// Package mail hands a mail to a mail server, or to a folder while somebody
// develops, and writes its texts from templates.
//
// A mail may hold a secret, such as the token of a link. So no error of this
// package quotes a mail's texts or the password, nor what a server replies to
// them: such replies are told by their codes alone.
package mail

import (
	"context"
	"time"
)

// Message is one mail to one recipient. It needs a Text, an HTML or both, in
// which case the reader's program chooses.
type Message struct {
	// ID makes the Message-ID. It is equal for repeated attempts at the same
	// mail, so that receivers recognise a repetition. 1 to 200 bytes, where all
	// but letters, digits and -_~ count three.
	ID      string
	From    string // an address, also with a name: Ada <ada@example.com>
	To      string // an address alone
	Subject string // one line
	Text    string
	HTML    string
	Date    time.Time // zero is now
}

// Sender hands over mails. It is safe for concurrent use.
type Sender interface {
	// Send returns once somebody else is responsible for the mail. An error is
	// errs.Invalid when no repetition of this mail can succeed: it can't be
	// written, or the server refused it for good. It is errs.Unavailable when
	// a later one may, also because an administrator mends something
	// meanwhile, and errs.Canceled when ctx ended first. After an error other
	// than errs.Invalid the mail may have been sent nevertheless.
	Send(ctx context.Context, m Message) error
}
