package listener_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/listener"
)

func TestAddressesThatAreNoneOfABus(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:4222", "127.0.0.1:4222", "nats://",
		"nats://127.0.0.1:4222,https://127.0.0.1"} {
		t.Setenv(listener.EnvURL, url)
		if _, err := listener.Connect(t.Context(), "x", slog.New(slog.DiscardHandler)); !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestFilesThatDoNotServeAreNamedByTheirVariable(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "ca.txt")
	if err := os.WriteFile(text, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		listener.EnvCA:          text,
		listener.EnvNKey:        filepath.Join(folder, "none"),
		listener.EnvCredentials: filepath.Join(folder, "none"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, path)
			_, err := listener.Connect(t.Context(), "x", slog.New(slog.DiscardHandler))
			if !errors.Is(err, errs.Invalid) || !strings.Contains(err.Error(), name) {
				t.Error(err)
			}
		})
	}
}
