package login

import (
	"strings"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// maxBody is the limit of a body below /auth, in bytes: an event holds the fields
// of a registration twice.
const maxBody = 64 << 10

// form is a body below /auth: a JSON object or the fields of an HTML form, which
// a browser sends, and which is replied to with a redirect.
type form struct {
	object.Object
	html     bool
	repeated []string // fields that an HTML form has more than once, of which the first counts
}

func readForm(x *kit.Exchange) (form, error) {
	f := form{html: strings.HasPrefix(strings.ToLower(x.Request.Header.Get("Content-Type")), kit.HTMLForm)}
	if x.Request.ContentLength > maxBody {
		x.CloseConnection()
		return f, tooLarge()
	}
	var err error
	if f.html {
		f.Object, f.repeated, err = readHTMLForm(x)
	} else {
		f.Object, err = x.ReadSmallObject(maxBody, kit.JSON, kit.HTMLForm)
	}
	if err == nil && len(f.Encode()) > maxBody {
		err = tooLarge()
	}
	return f, err
}

// readHTMLForm reads the fields of an HTML form, each a string.
func readHTMLForm(x *kit.Exchange) (fields object.Object, repeated []string, err error) {
	values, err := x.ReadForm(maxBody)
	if err != nil {
		return nil, nil, err
	}
	fields = object.Object{}
	for name := range values {
		fields[name] = object.AppendString(nil, values.Get(name))
		if len(values[name]) > 1 {
			repeated = append(repeated, name)
		}
	}
	fields, err = object.Parse(fields.Encode())
	return fields, repeated, err
}

func tooLarge() error {
	return errs.New(errs.TooLarge, "the body is larger than %d bytes, the limit of requests below /auth", maxBody)
}

// take removes string fields from the form and returns their values, "" for an
// absent one.
func (f form) take(names ...string) ([]string, error) {
	out := make([]string, len(names))
	for i, name := range names {
		value, given := f.Object[name]
		delete(f.Object, name)
		if !given || string(value) == "null" {
			continue
		}
		text, ok := object.Text(value)
		if !ok {
			return nil, wrongType(name, "must be a string")
		}
		out[i] = text
	}
	return out, nil
}

// takeOne is take for one field.
func (f form) takeOne(name string) (string, error) {
	values, err := f.take(name)
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// has reports whether the form has a field that is not empty.
func (f form) has(name string) bool {
	text, ok := object.Text(f.Object[name])
	return ok && text != ""
}

// takeBool removes a boolean field from the form and returns its value.
func (f form) takeBool(name string) (bool, error) {
	value := string(f.Object[name])
	delete(f.Object, name)
	switch value {
	case "true", `"true"`, `"on"`, `"1"`:
		return true, nil
	case "", "null", "false", `"false"`, `"off"`, `"0"`, `""`:
		return false, nil
	}
	return false, wrongType(name, `must be true or false, or one of the texts "true", "on", "1", "false", "off", "0"`)
}

func wrongType(field, message string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "a field has the wrong type",
		Fields: []errs.Field{{Pointer: object.Pointer(field), Message: message}}}
}

// takeLogin removes the e-mail address from the form and returns it.
func (f form) takeLogin() (string, error) {
	both, err := f.take("login", "email")
	if err != nil {
		return "", err
	}
	if both[0] == "" {
		return strings.TrimSpace(both[1]), nil
	}
	return strings.TrimSpace(both[0]), nil
}

// takeRequest removes the request of an application from an HTML form: the query of the page
// that asks for the login.
func (f form) takeRequest() (string, bool) {
	if !f.html {
		return "", false
	}
	request, given := object.Text(f.Object[requestField])
	delete(f.Object, requestField)
	return request, given
}
