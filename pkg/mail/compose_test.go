package mail_test

import (
	"errors"
	"io/fs"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/errs"
	belfry "belfry/pkg/mail"
	"belfry/test/mailbox"
)

func TestInvalidMessagesAreRejected(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for name, change := range map[string]func(*belfry.Message){
		"subject with a header":     func(m *belfry.Message) { m.Subject = "hi\r\nBcc: eve@example.com" },
		"subject with a CR":         func(m *belfry.Message) { m.Subject = "hi\rBcc: eve@example.com" },
		"subject with a LF":         func(m *belfry.Message) { m.Subject = "hi\n" },
		"subject with a NUL":        func(m *belfry.Message) { m.Subject = "hi\x00" },
		"subject, encoded":          func(m *belfry.Message) { m.Subject = "=?utf-8?q?hi=0D=0ABcc:?=" },
		"subject in no UTF-8":       func(m *belfry.Message) { m.Subject = "hi\xff" },
		"subject, too long":         func(m *belfry.Message) { m.Subject = long },
		"sender with a header":      func(m *belfry.Message) { m.From = "a@example.com\r\nBcc: eve@example.com" },
		"sender's name encodes one": func(m *belfry.Message) { m.From = "=?utf-8?q?hi=0D=0ABcc=3A?= <a@example.com>" },
		"sender's name, too long":   func(m *belfry.Message) { m.From = long + " <a@example.com>" },
		"sender, none":              func(m *belfry.Message) { m.From = "" },
		"recipient with a header":   func(m *belfry.Message) { m.To = "a@example.com\nBcc: eve@example.com" },
		"recipient, folded":         func(m *belfry.Message) { m.To = "a@example.com\r\n " },
		"recipient with a name":     func(m *belfry.Message) { m.To = "Your Bank <a@example.com>" },
		"recipients":                func(m *belfry.Message) { m.To = "a@example.com, eve@example.com" },
		"recipient, none":           func(m *belfry.Message) { m.To = "" },
		"recipient without domain":  func(m *belfry.Message) { m.To = "ada" },
		"recipient, too long":       func(m *belfry.Message) { m.To = "a@" + strings.Repeat("x.", 126) + "example" },
		"recipient's domain":        func(m *belfry.Message) { m.To = "a@-ü-.example" },
		"recipient in no UTF-8":     func(m *belfry.Message) { m.To = "a\xff@example.com" },
		"no id":                     func(m *belfry.Message) { m.ID = "" },
		"id, too long":              func(m *belfry.Message) { m.ID = strings.Repeat("x", 201) },
		"id, too long as a name":    func(m *belfry.Message) { m.ID = strings.Repeat("/", 67) },
		"no texts":                  func(m *belfry.Message) { m.Text, m.HTML = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			m := letter()
			change(&m)
			s := mailbox.Start(t)
			wantError(t, belfry.NewSMTP(options(s, "none")).Send(t.Context(), m), errs.Invalid)
			wantError(t, belfry.NewFolder(t.TempDir(), nil).Send(t.Context(), m), errs.Invalid)
		})
	}
}

func TestAnAddressThatTheServerDoesNotSupport(t *testing.T) {
	m := letter()
	m.To = "jürgen@example.org"
	s := mailbox.Start(t)
	wantError(t, belfry.NewSMTP(options(s, "none")).Send(t.Context(), m), errs.Invalid, "non-ASCII letters")
}

// Every id makes a valid Message-ID and a file name inside the folder;
// different ids make different ones.
func TestIDs(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "mails")
	seen := map[string]string{}
	ids := []string{"a", "a.b", "a+b", "a b", "a%20b", "..", "../a", "/etc/passwd", "a@b", "a>b", "é", "a\r\nb",
		strings.Repeat("/", 66), strings.Repeat("a", 200)}
	for _, id := range ids {
		m := letter()
		m.ID = id
		for _, attempt := range []string{"first", "second"} {
			got, file := written(t, folder, m)
			if filepath.Dir(file) != folder {
				t.Errorf("%q is written to %s", id, file)
			}
			if other, ok := seen[got.MessageID]; ok && other != id {
				t.Errorf("%q and %q are both %q", id, other, got.MessageID)
			} else if !ok && attempt == "second" {
				t.Errorf("%q has another Message-ID when it is repeated", id)
			}
			if strings.ContainsAny(got.MessageID, " \r\n<>/") || strings.Count(got.MessageID, "@") != 1 {
				t.Errorf("%q makes Message-ID %q", id, got.MessageID)
			}
			seen[got.MessageID] = id
		}
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != len(ids) {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// The name of an application is the name of the sender, also if each of its characters has four bytes.
func TestTheLongestNameOfAnApplicationArrives(t *testing.T) {
	m := letter()
	name := strings.Repeat("\U0001F514", 60)
	m.From = (&netmail.Address{Name: name, Address: "kitchen@example.com"}).String()
	got, _ := written(t, t.TempDir(), m)
	if from, err := netmail.ParseAddress(got.Header.Get("From")); err != nil || from.Name != name {
		t.Errorf("from %v, %v", from, err)
	}
	for line := range strings.Lines(got.Raw) {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// written sends a mail to a folder and parses it.
func written(t testing.TB, folder string, m belfry.Message) (mailbox.Mail, string) {
	t.Helper()
	var said []string
	err := belfry.NewFolder(folder, func(file, _ string) { said = append(said, file) }).Send(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 {
		t.Fatalf("it said %q", said)
	}
	return parsed(t, said[0]), said[0]
}

func parsed(t testing.TB, file string) mailbox.Mail {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := mailbox.Parse(raw)
	if err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	return got
}

// An accepted mail arrives unchanged, with the expected headers and no others.
func FuzzCompose(f *testing.F) {
	f.Add("Ada <ada@example.com>", "eve@example.org", "hello", "text", "<p>html</p>", "id")
	f.Add("=?utf-8?q?=C3=A9?= <a@b.c>", `"a b"@example.org`, "héllo wörld", ".\n..\r\n", "", "a/b")
	f.Add("a@[127.0.0.1]", "ü@bücher.example", strings.Repeat("x ", 400), "\xff\x00", "=", "..")
	f.Add("a@b\r\nBcc: c@d", "a@b\n", "a\r\nb: c", "", "", "\r\n")
	folder := f.TempDir()
	wanted := map[string]bool{
		"From": true, "To": true, "Subject": true, "Date": true, "Message-Id": true, "Mime-Version": true,
		"Content-Type": true, "Content-Transfer-Encoding": true, "Auto-Submitted": true,
	}
	f.Fuzz(func(t *testing.T, from, to, subject, text, html, id string) {
		m := belfry.Message{ID: id, From: from, To: to, Subject: subject, Text: text, HTML: html}
		var file string
		err := belfry.NewFolder(folder, func(f, _ string) { file = f }).Send(t.Context(), m)
		if errors.Is(err, errs.Invalid) {
			if _, err := os.Stat(file); file != "" || !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a refused mail is in %q", file)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(file)
		got := parsed(t, file)
		for name, values := range got.Header {
			if !wanted[name] || len(values) != 1 {
				t.Errorf("header %s: %q", name, values)
			}
		}
		if want := strings.Join(strings.Fields(subject), " "); strings.Join(strings.Fields(got.Subject), " ") != want {
			t.Errorf("subject %q, want %q", got.Subject, want)
		}
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
		if got.Text != lines.Replace(text) || got.HTML != lines.Replace(html) {
			t.Errorf("text %q and html %q, want %q and %q", got.Text, got.HTML, text, html)
		}
		for line := range strings.Lines(got.Raw) {
			if len(line) > 1000 {
				t.Errorf("a line of %d bytes", len(line))
			}
		}
	})
}
