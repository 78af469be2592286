package post

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// maxFailing is the number of failed mails that end a round.
const maxFailing = 10

// SendUnsent sends the mails that were requested within a day and are not sent, because their events may be lost, and
// reports how many. It first leaves the listener some time to send them. A mail that both send at the same moment
// arrives twice, as after a crash. It skips mails that can't be composed. After any other error it sends the rest, and
// another call sends the failed ones.
func (s *Post) SendUnsent(ctx context.Context, within time.Duration) (sent int, err error) {
	if s.Email == nil {
		return 0, nil
	}
	requested := map[string]string{} // the request of each mailbox, by its uuid
	for stored, err := range s.DB.Mailboxes.Store.All(ctx, store.MaxPage) {
		var mailbox record.Mailbox
		if err == nil {
			mailbox, err = s.DB.Mailboxes.Of(stored)
		}
		if err != nil {
			return 0, errs.Wrap(err, errs.KindOf(err), "auth: finding mails that are not sent failed")
		}
		if request, ok := s.UnsentIn(mailbox); ok {
			requested[mailbox.UUID] = request.ID
		}
	}
	if len(requested) == 0 {
		return 0, nil
	}
	if err := backoff.Sleep(ctx, within); err != nil {
		return 0, err
	}
	var failed []error
	for uuid, id := range requested {
		switch did, err := s.sendUnsent(ctx, uuid, id); {
		case ctx.Err() != nil:
			return sent, ctx.Err()
		case errors.Is(err, errs.Invalid):
			s.Log.LogAttrs(ctx, slog.LevelError, "auth: a mail that was not sent can't be composed",
				slog.String("error", errs.Messages(err)))
		case err != nil:
			failed = append(failed, err)
		case did:
			sent++
		}
		if len(failed) >= maxFailing {
			return sent, errors.Join(failed...) // no mail can be sent now; all will be retried
		}
	}
	return sent, errors.Join(failed...)
}

// UnsentIn returns the request of a mailbox whose mail is not sent.
func (s *Post) UnsentIn(mailbox record.Mailbox) (record.MailRequest, bool) {
	request := mailbox.Request
	return request, request.ID != "" && mailbox.Sent != request.ID &&
		s.DB.Now().Sub(record.Time(request.At)) < unsentFor
}

// sendUnsent sends the mail of a request, unless it is sent, or replaced by another, which has an event of its own.
func (s *Post) sendUnsent(ctx context.Context, uuid, id string) (sent bool, err error) {
	mailbox, err := s.DB.Mailboxes.Read(ctx, uuid)
	if err != nil {
		return false, record.IgnoreNotFound(err)
	}
	if request, ok := s.UnsentIn(mailbox); !ok || request.ID != id {
		return false, nil
	}
	return true, s.Deliver(ctx, &event.Envelope{Event: event.StoreSaved, UUID: uuid, Object: mailbox.Body})
}
