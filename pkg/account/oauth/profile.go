package oauth

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// parse parses a profile, which becomes an object. The fields in exact identify the user. changes lists the changed
// parts of the others.
func (t *transport) parse(body []byte, exact ...string) (o object.Object, changes []string, err error) {
	o, changes, err = repair(body, exact...)
	if err == nil {
		return o, changes, nil
	}
	// The fields of the error are omitted: they quote names.
	e := errs.New(errs.Invalid, "the profile of %s can't be read", t.name)
	var why *errs.Error
	if errors.As(err, &why) {
		e.Message += ": " + why.Message
	}
	return nil, nil, e
}

// identity makes an Identity of a profile. An id that is a number keeps its
// digits: 64 bits don't fit into a float64.
func (t *transport) identity(profile object.Object, field string) (Identity, error) {
	id, isText := profile.Text(field)
	if !isText && isDigits(profile[field]) {
		id = string(profile[field])
	}
	return t.identityOf(profile, id, field, field)
}

// identityOf makes an Identity of a profile and its id, "" if it is missing. fields are the expected places of the id,
// which stay in the profile at any size.
func (t *transport) identityOf(profile object.Object, id, message string, fields ...string) (Identity, error) {
	const most = 255
	if id == "" || len(id) > most || strings.ContainsFunc(id, unicode.IsControl) {
		return Identity{}, errs.New(errs.Invalid, "the profile of %s has no usable id in %q", t.name, message)
	}
	kept := withoutTokens(profile)
	changes := bound(kept, fields...)
	return Identity{ID: id, Profile: kept, Changes: changes}, nil
}

func isDigits(value []byte) bool {
	for _, c := range value {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(value) > 0
}

// withoutTokens copies a profile without fields, at any level, with names of credentials: profiles are stored and
// shown.
func withoutTokens(o object.Object) object.Object {
	kept := make(object.Object, len(o))
	for name, value := range o {
		if !namesToken(name) {
			kept[name] = nestedWithoutTokens(value)
		}
	}
	return kept
}

func nestedWithoutTokens(value json.RawMessage) json.RawMessage {
	switch value[0] {
	case '{':
		// Parse has accepted the value, so Decode does not fail.
		o, _ := object.Decode(value)
		return withoutTokens(o).Encode()
	case '[':
		list := []byte{'['}
		object.Elements(value, func(element []byte) bool {
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, nestedWithoutTokens(element)...)
			return true
		})
		return append(list, ']')
	default:
		return value
	}
}

func namesToken(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "token") || strings.Contains(name, "secret") || strings.Contains(name, "password")
}
