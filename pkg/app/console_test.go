package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/test/kit"
)

// Nothing waits for a bus that is known to be unavailable: views show the rest, and say what is missing.
func TestTheConsoleDoesNotWaitForABusThatIsUnavailable(t *testing.T) {
	a := newPlace(t, books).start()
	w := a.console().Workers
	if _, err := w.Listeners(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the end of the connection", func() bool { return a.Bus().Connected() != nil })
	for name, ask := range map[string]func() error{
		"listeners": func() error { _, err := w.Listeners(t.Context()); return err },
		"lag":       func() error { _, err := a.console().Graph.Lag(t.Context()); return err },
		"letters":   func() error { _, _, err := w.Letters(t.Context(), "", 0, 10); return err },
		"letter":    func() error { _, err := w.Letter(t.Context(), 1); return err },
		"retry":     func() error { return w.Retry(t.Context(), 1) },
		"drop":      func() error { return w.Drop(t.Context(), 1) },
		"reset":     func() error { _, err := w.Reset(t.Context(), "mapping", "all"); return err },
		"history": func() error {
			_, err := a.console().Objects.History(t.Context(), "Books", "emma", 0, 10)
			return err
		},
	} {
		// What is asked in vain says that nobody replied, after seconds. Why there is no connection changes with each
		// try to connect.
		if err := ask(); errs.KindOf(err) != errs.Unavailable ||
			!strings.HasPrefix(err.Error(), "the bus is unavailable: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mail in the folder of a mailer counts as sent, also after a restart.
func TestAWrittenMailCountsAsSent(t *testing.T) {
	p := newPlace(t, `
listen: 127.0.0.1:0
bus: {listen: ""}
authentication: {providers: {email: {}}}
mailers: {default: {type: file, folder: mails}}
stores: {Users: {expose: {}}}
`)
	sent := p.start().console().System.Mail.Sent
	if sent() {
		t.Error("no mail was written")
	}
	mails := filepath.Join(p.folder, "mails")
	err := errors.Join(os.MkdirAll(mails, 0o700), os.WriteFile(filepath.Join(mails, "20300102T030405.000000000Z-one.eml"),
		[]byte("Content-Type: text/plain\r\n\r\none\r\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if !sent() {
		t.Error("a mail was written")
	}
}
