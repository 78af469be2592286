package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Failure is an object that was not imported.
type Failure struct {
	Position              // of the object, or of the syntax error in it
	UUID     string       // "" when unknown
	Status   int          // status of the reply; 0 when the object was not sent
	Message  string       // the error
	Fields   []errs.Field // violations within the object
}

// String returns line:column, the UUID, the message, and each violation.
func (f Failure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d:%d: ", f.Line, f.Column)
	if f.UUID != "" {
		b.WriteString(f.UUID + ": ")
	}
	b.WriteString(f.Message)
	if f.Status != 0 {
		fmt.Fprintf(&b, " (%d)", f.Status)
	}
	for _, field := range f.Fields {
		b.WriteString("; " + field.String())
	}
	return printable(b.String())
}

// printable replaces control characters, which could control a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// parse parses the object of an item.
func (it *item) parse() (object.Object, *Failure) {
	if it.long {
		return nil, &Failure{Position: it.at, Message: fmt.Sprintf("longer than %d MiB", maxItem>>20)}
	}
	o, err := object.Parse(it.text)
	if err == nil {
		return o, nil
	}
	f := failed(it.at, err)
	if offset, what := malformed(it.text); what != "" {
		f = &Failure{Position: it.position(offset), Message: "malformed JSON: " + what}
	}
	return nil, f
}

func failed(at Position, err error) *Failure {
	return &Failure{Position: at, Message: err.Error()}
}

// malformed returns the position and description of a syntax error, "" for valid JSON.
func malformed(text []byte) (offset int, what string) {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	_, err := dec.ReadValue()
	if err == nil {
		offset = len(text) - len(bytes.TrimLeft(text[dec.InputOffset():], space))
		if offset < len(text) {
			what = "something follows the object"
		}
		return offset, what
	}
	var syntax *jsontext.SyntacticError
	if errors.Is(err, io.ErrUnexpectedEOF) || !errors.As(err, &syntax) {
		return len(text), "the object ends too early; in JSON lines each object is whole on one line"
	}
	what = strings.TrimPrefix(syntax.Err.Error(), "jsontext: ")
	if syntax.JSONPointer != "" {
		what += " in " + string(syntax.JSONPointer)
	}
	return int(syntax.ByteOffset), what
}

// identity determines the UUIDs of objects.
type identity struct {
	key   string
	batch string
}

// of returns the UUID of an object: the value of the key field, its own, or one derived
// from its position and content, which text is as the input has it.
func (id identity) of(o object.Object, n int64, text []byte) (string, error) {
	field := id.key
	if field == "" {
		field = "uuid"
	}
	value, given := o[field]
	if !given {
		if id.key != "" {
			return "", wrong(field, "is missing; it is to be the object's uuid")
		}
		return derive(id.batch, n, asWritten(o, text)), nil
	}
	if id.key != "" {
		if uuid, named := object.Named(value); named {
			return uuid, nil
		}
		why := object.WhyUnnamed(value)
		if why == "" {
			why = "must be a string or a whole number, is null"
		}
		return "", wrong(field, why)
	}
	own, isText := object.Text(value)
	if !isText {
		return "", wrong(field, "must be a string to be the object's uuid")
	}
	if err := object.CheckUUID(own); err != nil {
		return "", wrong(field, err.Error())
	}
	return own, nil
}

func wrong(field, message string) error {
	e := errs.New(errs.Invalid, "no valid uuid")
	e.Fields = []errs.Field{{Pointer: object.Pointer(field), Message: message}}
	return e
}

// asWritten returns an object, encoded, with the escapes of the input. Releases before stored strings as they were
// sent, and a file that one of them has imported must not be other objects now.
func asWritten(o object.Object, text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return o.Encode()
	}
	compact, err := jsontext.AppendFormat(nil, object.WithoutMark(text), jsontext.PreserveRawStrings(true))
	if err != nil {
		return o.Encode()
	}
	written := make(object.Object, len(o))
	_ = object.Each(compact, func(name string, value []byte) bool {
		written[name] = value
		return true
	})
	return written.Encode()
}

// derive returns the UUID of an object without one: a UUIDv8 of its number in the input
// (48 bits, so that UUIDs sort like the input) and a hash of its content and the batch.
// The same object at the same position always has the same UUID, which makes an import
// idempotent.
func derive(batch string, n int64, content []byte) string {
	hash := sha256.New()
	hash.Write(append([]byte(batch), 0))
	hash.Write(content)
	var id uuid.UUID
	binary.BigEndian.PutUint64(id[:], uint64(n)<<16)
	copy(id[6:], hash.Sum(nil))
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id.String()
}
