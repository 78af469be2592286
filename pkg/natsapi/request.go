package natsapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/op"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/wire"
)

// request is a valid request.
type request struct {
	op.Asked
	of    *op.Request
	key   string // "" for none
	actor string // uuid of a user, "" for none
	id    string
	trace string // as its header has it
}

// maxID is the length limit of a request id from a client.
const maxID = 128

// header returns the value of a header; names are case-insensitive. A header that
// occurs twice is an error.
func header(h nats.Header, name string) (string, error) {
	value, found := "", false
	for key, values := range h {
		if !strings.EqualFold(key, name) || len(values) == 0 {
			continue
		}
		if found || len(values) > 1 {
			return "", errs.New(errs.Invalid, "the header %s occurs more than once", name)
		}
		value, found = values[0], true
	}
	return value, nil
}

// hasHeader reports whether a header is present; it may be empty.
func hasHeader(h nats.Header, name string) bool {
	for key := range h {
		if strings.EqualFold(key, name) {
			return true
		}
	}
	return false
}

// requestID returns the id in the message if it is safe for logs, else a new one.
func requestID(m *nats.Msg) string {
	id, err := header(m.Header, wire.HeaderID)
	plain := func(r rune) bool { return r > ' ' && r <= '~' && r != '"' && r != '\\' }
	if err != nil || id == "" || len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return !plain(r) }) {
		return object.NewUUID()
	}
	return id
}

// parse reads a request strictly: ignoring an unknown field could execute something
// other than what the client intended.
func parse(of *op.Request, id string, m *nats.Msg) (*request, error) {
	r := &request{of: of, id: id}
	if err := r.parseHeaders(m.Header); err != nil {
		return nil, err
	}
	body, err := object.Parse(m.Data)
	if err != nil {
		return nil, err
	}
	r.Body = body
	all, required := of.Fields()
	for _, name := range body.Names() {
		if !slices.Contains(all, name) {
			return nil, invalidField(name, "is unknown; %s takes %s", of.Op, strings.Join(all, ", "))
		}
		if err := r.parseField(name, body[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range required {
		if body[name] == nil {
			return nil, invalidField(name, "is missing: %s needs it", of.Op)
		}
	}
	if slices.Contains(all, "uuid") {
		err = r.findUUID()
	}
	return r, err
}

func (r *request) parseHeaders(h nats.Header) (err error) {
	if r.trace, err = header(h, wire.HeaderTrace); err != nil {
		return err
	}
	if r.actor, err = header(h, wire.HeaderActor); err != nil {
		return err
	}
	if hasHeader(h, wire.HeaderActor) && !object.ValidUUID(r.actor) {
		return errs.New(errs.Invalid, "%s must be the uuid of a user", wire.HeaderActor)
	}
	if !r.of.Write || !hasHeader(h, wire.HeaderKey) {
		return nil
	}
	if r.key, err = header(h, wire.HeaderKey); err != nil {
		return err
	}
	return wire.ValidateKey(r.key)
}

func (r *request) parseField(name string, value json.RawMessage) error {
	var err error
	switch name {
	case "object":
		if value[0] != '{' {
			return invalidField(name, "must be an object")
		}
		r.Request.Object = value
		r.Object, err = object.Decode(value)
		return err
	case "revision":
		r.Revision, err = parseRevision(name, value)
		return err
	case "limit":
		if r.Limit, err = strconv.Atoi(string(value)); err != nil || r.Limit < 1 {
			return invalidField(name, "must be a whole number above 0")
		}
		return nil
	case "explain":
		if r.Explain = string(value) == "true"; !r.Explain && string(value) != "false" {
			return invalidField(name, "must be true or false")
		}
		return nil
	}
	to, common := map[string]*string{
		"uuid": &r.UUID, "q": &r.Words, "filter": &r.Filter, "sort": &r.Sort, "cursor": &r.Cursor, "before": &r.Before,
		"fields": &r.Fields, "count": &r.Count,
	}[name]
	if !common {
		return nil // a field of this operation alone, which it reads itself
	}
	text, ok := object.Text(value)
	if !ok {
		return invalidField(name, "must be a string")
	}
	*to = text
	switch name {
	case "uuid":
		return object.CheckUUID(text)
	case "count":
		_, err = store.ParseCount(text)
	}
	return err
}

// parseRevision reads a number, as replies have it, or the decimal digits of one in a string, as events have it: a
// program whose numbers are floating point ones keeps all digits of these.
func parseRevision(name string, value json.RawMessage) (uint64, error) {
	digits := string(value)
	if text, ok := object.Text(value); ok {
		digits = text
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, invalidField(name, "is larger than any revision: it has at most 64 bits")
	case err != nil || n == 0 || digits[0] == '0':
		return 0, invalidField(name, "must be the revision of an object, a whole number above 0 or a string of its "+
			"decimal digits, as in replies and in events")
	}
	return n, nil
}

// findUUID takes the uuid from the object if the request lacks one.
func (r *request) findUUID() error {
	if r.UUID != "" {
		return nil
	}
	value, ok := r.Object["uuid"]
	if !ok {
		if r.of.Op == wire.Save {
			return nil
		}
		return invalidField("uuid", "is missing, in the object as well")
	}
	if r.UUID, ok = object.Text(value); !ok {
		return invalidField("object/uuid", "must be a string")
	}
	return object.CheckUUID(r.UUID)
}

// invalidField returns an error about a field of the body.
func invalidField(name, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if len(name) > 64 {
		name = strings.ToValidUTF8(name[:64], "") + "..."
	}
	return &errs.Error{
		Kind: errs.Invalid, Message: fmt.Sprintf("%q %s", name, what),
		Fields: []errs.Field{{Pointer: object.Pointer(name), Message: what}},
	}
}

// fingerprint identifies the request and its user, to detect different requests
// with the same key.
func (r *request) fingerprint() string {
	return idempotent.Fingerprint(r.of.Op, r.actor, r.UUID, strconv.FormatUint(r.Revision, 10),
		string(r.Object.Encode()))
}
