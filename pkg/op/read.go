package op

import (
	"reflect"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

// MaxForm is the limit of a body with fields, in bytes: an event holds the fields of a registration twice.
const MaxForm = 64 << 10

// IsHTML reports whether a body is an HTML form, whose browser is redirected.
func IsHTML(x *httpkit.Exchange) bool {
	return strings.HasPrefix(strings.ToLower(x.Request.Header.Get("Content-Type")), httpkit.HTMLForm)
}

// Fields returns the handler of an operation with fields. It reads them from JSON or an HTML form, runs the operation,
// and lets reply send the outcome or the error. html reports whether the reply to a request is for a browser.
func Fields[T any](html func(*httpkit.Exchange) bool, run func(x *httpkit.Exchange, in T) (Outcome, error),
	reply func(x *httpkit.Exchange, html bool, o Outcome, err error) error) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		browser, o := html(x), Outcome{}
		in, err := Read[T](x, browser)
		if err == nil {
			o, err = run(x, in)
		}
		return reply(x, browser, o, err)
	}
}

// Read reads the fields of a body. It does not read a program's body if no field is for programs.
func Read[T any](x *httpkit.Exchange, html bool) (in T, err error) {
	err = read(x, html, reflect.ValueOf(&in).Elem())
	return in, err
}

// read is Read into any struct.
func read(x *httpkit.Exchange, html bool, in reflect.Value) error {
	if !html && !forPrograms(fieldsOf(in.Type())) {
		return nil
	}
	body, err := ReadInput(x)
	if err != nil {
		return err
	}
	body.HTML = html
	return body.decode(in)
}

// ReadInput reads a body with fields: a JSON object, or the fields of an HTML form, which a browser sends.
func ReadInput(x *httpkit.Exchange) (Input, error) {
	in := Input{HTML: IsHTML(x)}
	if x.Request.ContentLength > MaxForm {
		x.CloseConnection()
		return in, TooLarge(x)
	}
	var err error
	if in.HTML {
		in.Rest, in.Repeated, err = readHTMLForm(x)
	} else {
		in.Rest, err = x.ReadSmallObject(MaxForm, httpkit.JSON, httpkit.HTMLForm)
	}
	if err == nil && len(in.Rest.Encode()) > MaxForm {
		err = TooLarge(x)
	}
	return in, err
}

// readHTMLForm reads the fields of an HTML form, each a string.
func readHTMLForm(x *httpkit.Exchange) (fields object.Object, repeated []string, err error) {
	values, err := x.ReadForm(MaxForm)
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
	slices.Sort(repeated)
	fields, err = object.Parse(fields.Encode())
	return fields, repeated, err
}

// TooLarge is the error of a body with more than MaxForm bytes.
func TooLarge(x *httpkit.Exchange) error {
	first, _, _ := strings.Cut(strings.TrimPrefix(x.Request.URL.Path, "/"), "/")
	return errs.New(errs.TooLarge, "the body is larger than %d bytes, the limit of requests below /%s", MaxForm, first)
}
