package listener_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/listener"
)

// A subscription that can't be set up is ended: nobody else could end it.
func TestASubscriptionThatCanNotBeSetUpIsEnded(t *testing.T) {
	t.Parallel()
	conn := open(t).Conn()
	before := conn.NumSubscriptions()
	sub, err := conn.Subscribe("test.setup", func(*nats.Msg) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.LimitPending(sub, 0); !errors.Is(err, nats.ErrInvalidArg) {
		t.Fatalf("a limit of 0: %v", err)
	}
	if now := conn.NumSubscriptions(); now != before || sub.IsValid() {
		t.Errorf("there are %d subscriptions instead of %d, valid: %v", now, before, sub.IsValid())
	}
	if sub, err = conn.Subscribe("test.setup", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := listener.LimitPending(sub, -1); err != nil || !sub.IsValid() {
		t.Errorf("without a limit: %v, valid: %v", err, sub.IsValid())
	}
}
