package listener_test

import (
	"log/slog"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

func TestAddressesThatAreNoneOfABus(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:4222", "127.0.0.1:4222", "nats://", "nats://127.0.0.1:4222,https://127.0.0.1"} {
		t.Setenv(listener.EnvURL, url)
		if _, err := listener.Connect(t.Context(), "x", slog.New(slog.DiscardHandler)); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
