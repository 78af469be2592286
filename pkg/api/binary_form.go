package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

const (
	formType    = "multipart/form-data"
	maxBoundary = 70 // RFC 2046
)

// Bounds of a form beside its file, in bytes and numbers.
const (
	maxFormAround = 64 << 10 // boundaries, headers and fields together
	maxFields     = 32
	maxFieldName  = 64
)

// form is a body of multipart/form-data with one file. It reads as the bytes
// of the file; its end comes only when the whole form has been read and is
// right. The fields beside the file are complete by then.
type form struct {
	parts  *multipart.Reader
	around *around
	file   *multipart.Part
	fields object.Object // texts
	ended  bool
}

// openForm reads a form up to the first byte of its file.
func openForm(body io.Reader, boundary string) (*form, error) {
	if boundary == "" || len(boundary) > maxBoundary {
		return nil, errs.New(errs.Invalid, "the form's Content-Type needs a boundary of 1 to %d characters", maxBoundary)
	}
	around := &around{body: body, left: maxFormAround}
	f := &form{parts: multipart.NewReader(closed(around), boundary), around: around, fields: object.Object{}}
	if err := f.next(); err != nil {
		return nil, err
	}
	if f.file == nil {
		return nil, errs.New(errs.Invalid, "the form has no file: a part with a filename is expected")
	}
	around.inFile = true
	return f, nil
}

// closed makes the end of a body one that package multipart takes for the end of
// a form only behind the last boundary, which needs no line break of its own.
func closed(body io.Reader) io.Reader {
	return io.MultiReader(body, strings.NewReader("\r\n"), cutOff{})
}

type cutOff struct{}

func (cutOff) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// header returns what the form says of its file.
func (f *form) header() map[string][]string { return f.file.Header }

// Read implements io.Reader.
func (f *form) Read(p []byte) (int, error) {
	if f.ended {
		return 0, io.EOF
	}
	n, err := f.file.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return n, f.malformed(err)
	}
	f.around.inFile = false
	if err := f.next(); err != nil {
		return n, err
	}
	// What follows the last boundary means nothing, but belongs to the body.
	if _, err := io.Copy(io.Discard, f.around); err != nil {
		return n, f.malformed(err)
	}
	f.ended = true
	return n, io.EOF
}

// next reads fields up to the file, or to the end of the form.
func (f *form) next() error {
	for {
		// The part as it was sent: RFC 7578 knows no transfer encodings.
		part, err := f.parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.malformed(err)
		}
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return errs.New(errs.Invalid, "a part of the form has no Content-Disposition, or a malformed one")
		}
		switch name, isFile := params["filename"]; {
		case encoded(part):
			return errs.New(errs.Unsupported, "Content-Transfer-Encoding is not taken: send the parts of the form as they are")
		case !isFile:
			err = f.field(params["name"], part)
		case name == "":
			// A browser's control in which no file was chosen.
			_, err = io.Copy(io.Discard, part)
		case f.file != nil:
			return errs.New(errs.Invalid, "the form has several files: one is expected")
		default:
			f.file = part
			return nil
		}
		if err != nil {
			return f.malformed(err)
		}
	}
}

// encoded reports whether the bytes of a part are not those of what it holds.
func encoded(part *multipart.Part) bool {
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "binary", "8bit", "7bit":
		return false
	}
	return true
}

func (f *form) field(name string, value io.Reader) error {
	if name == "" || len(name) > maxFieldName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return errs.New(errs.Invalid, "a field of the form has no name, or not one of at most %d bytes of text", maxFieldName)
	}
	if f.fields[name] != nil {
		return errs.New(errs.Invalid, "the form has the field %q twice", name)
	}
	if len(f.fields) == maxFields {
		return errs.New(errs.TooLarge, "the form has more than %d fields", maxFields)
	}
	text, err := io.ReadAll(value)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return errs.New(errs.Invalid, "the form's field %q is no text in UTF-8", name)
	}
	f.fields[name] = object.AppendString(nil, string(text))
	if len(f.fields.Encode()) > binary.MaxMetadata {
		return errs.New(errs.TooLarge, "the form has more than %d bytes of fields", binary.MaxMetadata)
	}
	return nil
}

// malformed says what is wrong with a form, be it the body that broke off.
func (f *form) malformed(err error) error {
	var known *errs.Error
	switch {
	case f.around.err != nil:
		return f.around.err
	case errors.As(err, &known):
		return known
	case errors.Is(err, multipart.ErrMessageTooLarge):
		return tooMuchAround()
	default:
		return errs.Wrap(err, errs.Invalid, "the form is malformed, or ends before its last boundary")
	}
}

func tooMuchAround() error {
	return errs.New(errs.TooLarge, "the form has more than %d bytes beside its file", maxFormAround)
}

// around reads a form and counts what it has beside its file, which would
// otherwise be read without an end.
type around struct {
	body   io.Reader
	left   int64
	inFile bool
	err    error // why there is no more, unless the body is at its end
}

// Read implements io.Reader.
func (a *around) Read(p []byte) (int, error) {
	if a.err != nil {
		return 0, a.err
	}
	n, err := a.body.Read(p)
	if !a.inFile {
		a.left -= int64(n)
	}
	if a.left < 0 {
		err = tooMuchAround()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		a.err = err
	}
	return n, err
}
