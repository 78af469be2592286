package mail

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
)

// maxRead is how much is read of a mail's file, in bytes: its texts have a bound, and their encodings at most three
// times that.
const maxRead = 1 << 20

// Written is a mail that NewFolder wrote.
type Written struct {
	Name              string // of its file
	From, To, Subject string
	Date              time.Time
	Text, HTML        string
}

var fileName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{9}Z-[A-Za-z0-9_~+%-]+\.eml$`)

// List reads the latest mails of a folder, the latest first. A missing folder has no mails; other files are
// skipped.
func List(folder string, limit int) ([]Written, error) {
	names, err := fs.Glob(os.DirFS(folder), "*.eml")
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the folder of mails can't be read")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !fileName.MatchString(name) })
	slices.Sort(names)
	slices.Reverse(names)
	var all []Written
	for _, name := range names[:min(limit, len(names))] {
		if m, err := Read(folder, name); err == nil {
			all = append(all, m)
		}
	}
	return all, nil
}

// Read reads a mail of a folder. It reports errs.NotFound for an unknown name.
func Read(folder, name string) (Written, error) {
	missing := func(err error) (Written, error) {
		return Written{}, errs.Wrap(err, errs.NotFound,
			"there is no such mail: it has been deleted, or is not one of belfry's")
	}
	if !fileName.MatchString(name) {
		return missing(fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return missing(err)
	}
	defer f.Close()
	m, err := netmail.ReadMessage(io.LimitReader(f, maxRead))
	if err != nil {
		return missing(err)
	}
	decoder := &mime.WordDecoder{}
	header := func(name string) string {
		text, err := decoder.DecodeHeader(m.Header.Get(name))
		if err != nil {
			return m.Header.Get(name)
		}
		return text
	}
	w := Written{Name: name, From: header("From"), To: header("To"), Subject: header("Subject")}
	w.Date, _ = m.Header.Date()
	if err := w.part(m.Header.Get, m.Body); err != nil {
		return missing(err)
	}
	return w, nil
}

// part reads a body, or the parts of one.
func (w *Written) part(header func(name string) string, body io.Reader) error {
	kind, parameters, err := mime.ParseMediaType(header("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(kind, "multipart/") {
		parts := multipart.NewReader(body, parameters["boundary"])
		for {
			p, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = w.part(p.Header.Get, p)
			}
			if err != nil {
				return err
			}
		}
	}
	switch strings.ToLower(header("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	switch clean := string(bytes.ReplaceAll(bytes.ToValidUTF8(text, nil), []byte("\r\n"), []byte("\n"))); kind {
	case "text/plain":
		w.Text = clean
	case "text/html":
		w.HTML = clean
	}
	return nil
}
