package files

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

const (
	formType    = "multipart/form-data"
	maxBoundary = 70 // RFC 2046
)

// Limits of a form besides its file.
const (
	maxOverhead  = 64 << 10 // bytes of boundaries, headers and fields together
	maxFields    = 32
	maxFieldName = 64 // bytes
)

// form is a body of multipart/form-data with one file. Reading it returns the bytes
// of the file, and io.EOF only once the rest of the form has been read and is
// valid. The fields are complete by then.
type form struct {
	parts  *multipart.Reader
	meter  *meter
	file   *multipart.Part
	fields object.Object // strings
	ended  bool
}

// openForm reads a form up to the first byte of its file.
func openForm(body io.Reader, boundary string) (*form, error) {
	if boundary == "" || len(boundary) > maxBoundary {
		return nil, errs.New(errs.Invalid, "the form's Content-Type needs a boundary of 1 to %d characters",
			maxBoundary)
	}
	m := &meter{body: body, left: maxOverhead}
	f := &form{parts: multipart.NewReader(terminated(m), boundary), meter: m, fields: object.Object{}}
	if err := f.next(); err != nil {
		return nil, err
	}
	if f.file == nil {
		return nil, errs.New(errs.Invalid, "the form has no file: a part with a filename is expected")
	}
	m.inFile = true
	return f, nil
}

// terminated appends the line break that package multipart expects after the last boundary, and an error instead of
// io.EOF, so that a body without its last boundary is not treated as complete.
func terminated(body io.Reader) io.Reader {
	return io.MultiReader(body, strings.NewReader("\r\n"), truncation{})
}

type truncation struct{}

func (truncation) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// header returns the headers of the file.
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
	f.meter.inFile = false
	if err := f.next(); err != nil {
		return n, err
	}
	// Data after the last boundary is ignored, and read as part of the body.
	if _, err := io.Copy(io.Discard, f.meter); err != nil {
		return n, f.malformed(err)
	}
	f.ended = true
	return n, io.EOF
}

// next reads fields up to the file, or to the end of the form.
func (f *form) next() error {
	for {
		// RFC 7578 has no transfer encodings.
		part, err := f.parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return f.malformed(err)
		}
		_, params, err := httpkit.ParseMediaType(part.Header.Get("Content-Disposition"))
		if err != nil {
			return errs.New(errs.Invalid, "a part of the form has no Content-Disposition, or a malformed one")
		}
		if err := checkExtended(part.Header.Get("Content-Disposition")); err != nil { // else the part would be a field
			return err
		}
		switch name, isFile := params["filename"]; {
		case encoded(part):
			return errs.New(errs.Unsupported,
				"Content-Transfer-Encoding is not supported: send the parts of the form without it")
		case !isFile:
			err = f.field(params["name"], part)
		case name == "":
			// An HTML file input without a chosen file.
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

// encoded reports whether a part has a transfer encoding.
func encoded(part *multipart.Part) bool {
	switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
	case "", "binary", "8bit", "7bit":
		return false
	}
	return true
}

func (f *form) field(name string, value io.Reader) error {
	if name == "" || len(name) > maxFieldName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return errs.New(errs.Invalid, "a field of the form needs a name of UTF-8 text, at most %d bytes long",
			maxFieldName)
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
		return errs.New(errs.Invalid, "the form's field %q is not UTF-8 text", name)
	}
	f.fields[name] = object.AppendString(nil, string(text))
	if len(f.fields.Encode()) > binary.MaxMetadata {
		return errs.New(errs.TooLarge, "the form has more than %d bytes of fields", binary.MaxMetadata)
	}
	return nil
}

// malformed returns the error to reply with when reading the form failed.
func (f *form) malformed(err error) error {
	var known *errs.Error
	switch {
	case f.meter.err != nil:
		return f.meter.err
	case errors.As(err, &known):
		return known
	case errors.Is(err, multipart.ErrMessageTooLarge):
		return tooMuchOverhead()
	default:
		return errs.Wrap(err, errs.Invalid, "the form is malformed, or ends before its last boundary")
	}
}

func tooMuchOverhead() error {
	return errs.New(errs.TooLarge, "the form has more than %d bytes besides its file", maxOverhead)
}

// meter reads a form and limits its data besides the file.
type meter struct {
	body   io.Reader
	left   int64
	inFile bool
	err    error // that ended the body, other than io.EOF
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.body.Read(p)
	if !m.inFile {
		m.left -= int64(n)
	}
	if m.left < 0 {
		err = tooMuchOverhead()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}
