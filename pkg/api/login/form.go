package login

import (
	"slices"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// maxBody is the limit of a body below /auth, in bytes: an event holds the fields
// of a registration twice.
const maxBody = 64 << 10

// readForm reads a body below /auth: a JSON object, or the fields of an HTML form, which a browser sends.
func readForm(x *kit.Exchange) (op.Input, error) {
	in := op.Input{HTML: isHTML(x)}
	if x.Request.ContentLength > maxBody {
		x.CloseConnection()
		return in, tooLarge()
	}
	var err error
	if in.HTML {
		in.Rest, in.Repeated, err = readHTMLForm(x)
	} else {
		in.Rest, err = x.ReadSmallObject(maxBody, kit.JSON, kit.HTMLForm)
	}
	if err == nil && len(in.Rest.Encode()) > maxBody {
		err = tooLarge()
	}
	return in, err
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
	slices.Sort(repeated)
	fields, err = object.Parse(fields.Encode())
	return fields, repeated, err
}

func tooLarge() error {
	return errs.New(errs.TooLarge, "the body is larger than %d bytes, the limit of requests below /auth", maxBody)
}

// fieldError is the error of a field, of which a request with this message is made.
func fieldError(message, field, says string) error {
	return &errs.Error{Kind: errs.Invalid, Message: message, Fields: []errs.Field{{Pointer: object.Pointer(field), Message: says}}}
}
