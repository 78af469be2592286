package mail_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

// hanging sends to a server that hangs at a stage, and calls then once it does.
// reached is false when the timeout ended the send at an earlier stage.
func hanging(t *testing.T, ctx context.Context, hangs string, timeout time.Duration,
	then func()) (err error, reached bool) {
	t.Helper()
	s := mailbox.Start(t, mailbox.StartTLS(), mailbox.Login(user, password))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	stuck := make(chan struct{}, 1)
	s.Refuse(func(stage, _ string) error {
		if stage == hangs {
			stuck <- struct{}{}
			<-release
		}
		return nil
	})
	opts := options(s, "starttls")
	opts.User, opts.Password, opts.Timeout = user, password, timeout
	sent := make(chan error, 1)
	go func() { sent <- belfry.NewSMTP(opts).Send(ctx, letter()) }()
	select {
	case <-stuck:
	case err := <-sent:
		return err, len(stuck) > 0
	}
	then()
	return <-sent, true
}

var stages = map[string]string{"AUTH": "logging in", "MAIL": "naming the sender", "RCPT": "naming the recipient",
	"DATA": " the content"}

func TestCancelingTheContextEndsASend(t *testing.T) {
	for stage, doing := range stages {
		t.Run(stage, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			err, _ := hanging(t, ctx, stage, time.Hour, cancel)
			wantError(t, err, errs.Canceled, doing)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v is not the context's error", err)
			}
		})
	}
}

func TestATimeoutEndsASend(t *testing.T) {
	for stage, doing := range stages {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			// A slow machine needs a longer timeout to reach the stage.
			for timeout := 250 * time.Millisecond; ; timeout *= 4 {
				err, reached := hanging(t, t.Context(), stage, timeout, func() {})
				if reached || timeout > time.Minute {
					wantError(t, err, errs.Unavailable, doing, "did not end within "+timeout.String())
					return
				}
			}
		})
	}
}

func TestAServerThatSendsNoGreeting(t *testing.T) {
	for _, tls := range []string{"none", "starttls", "tls"} {
		opts := listen(t, "")
		opts.TLS, opts.Timeout = tls, 100*time.Millisecond
		wantError(t, belfry.NewSMTP(opts).Send(t.Context(), letter()), errs.Unavailable, "did not end within 100ms")

		opts.Timeout = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		wantError(t, belfry.NewSMTP(opts).Send(ctx, letter()), errs.Canceled)
		cancel()
	}
}

func TestACanceledContextSendsNothing(t *testing.T) {
	s := mailbox.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, belfry.NewSMTP(options(s, "none")).Send(ctx, letter()), errs.Canceled)
	wantError(t, belfry.NewFolder(t.TempDir(), nil).Send(ctx, letter()), errs.Canceled)
}
