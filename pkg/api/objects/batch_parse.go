package objects

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/wire"
)

// atBody returns an error about a place in the body.
func atBody(pointer, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	return &errs.Error{Kind: errs.Invalid, Message: pointer + " " + what,
		Fields: []errs.Field{{Pointer: pointer, Message: what}}}
}

// parseBatch returns the operations of a batch.
func parseBatch(body object.Object) ([]json.RawMessage, error) {
	for name, value := range body {
		switch name {
		case "operations":
		case "atomic":
			if err := checkAtomic(value); err != nil {
				return nil, err
			}
		default:
			return nil, atBody(object.Pointer(name), "is unknown: a batch has operations, and may have atomic")
		}
	}
	var all []json.RawMessage
	object.Elements(body["operations"], func(one []byte) bool {
		all = append(all, one)
		return len(all) <= maxOperations
	})
	if len(all) == 0 || len(all) > maxOperations {
		return nil, atBody("/operations", "must be an array of 1 to %d operations", maxOperations)
	}
	return all, nil
}

func checkAtomic(value json.RawMessage) error {
	switch string(value) {
	case "false":
		return nil
	case "true":
		return atBody("/atomic",
			"can't be true: only single objects are written atomically, since not every backend has transactions. "+
				"Keep data that must change together in one object, or make operations repeatable, each with its own "+
				"Idempotency-Key")
	default:
		return atBody("/atomic", "must be false")
	}
}

// parse reads an operation.
func (all *Resources) parse(x *httpkit.Exchange, raw json.RawMessage) (o operation) {
	var given struct {
		method, path string
		header       http.Header
		body         json.RawMessage
	}
	o.err = func() (err error) {
		if len(raw) == 0 || raw[0] != '{' {
			return errs.New(errs.Invalid, "an operation must be an object")
		}
		malformed := object.Each(raw, func(name string, value []byte) bool {
			ok := true
			switch name {
			case "method":
				given.method, ok = object.Text(value)
			case "path":
				given.path, ok = object.Text(value)
			case "headers":
				given.header, err = parseHeaders(value)
			case "body":
				given.body = value
			default:
				err = errs.New(errs.Invalid, "%q is unknown: an operation has method, path, headers and body",
					httpkit.Truncate(name, 64))
			}
			if !ok {
				err = errs.New(errs.Invalid, "the %s of an operation must be a string", name)
			}
			return err == nil
		})
		if err = cmp.Or(err, malformed); err != nil {
			return err
		}
		if given.method == "" || given.path == "" {
			return errs.New(errs.Invalid, "an operation must have a method and a path")
		}
		var uuid string
		if o.resource, uuid, err = all.route(given.method, given.path); err != nil {
			return err
		}
		path := o.resource.url
		if given.method != http.MethodPost {
			path += "/" + uuid
		}
		if err := all.Calls.Allow(x, given.method, path); err != nil {
			return err
		}
		if o.request, err = newRequest(given.method, uuid, given.header); err != nil {
			return err
		}
		return o.request.takeBody(given.body)
	}()
	return o
}

// takeBody reads the body of an operation.
func (q *request) takeBody(raw json.RawMessage) (err error) {
	has := q.method != http.MethodGet && q.method != http.MethodDelete
	switch {
	case !has && raw != nil:
		return errs.New(errs.Invalid, "%s has no body", q.method)
	case !has:
		return nil
	case len(raw) == 0 || raw[0] != '{':
		return errs.New(errs.Invalid, "the body of %s must be an object", q.method)
	}
	q.body, err = object.Decode(raw)
	return err
}

var errHeaders = errs.New(errs.Invalid, "the headers of an operation must be an object whose members are strings")

// parseHeaders reads the headers of an operation. Unknown headers are refused, since ignoring one could violate the
// client's intention.
func parseHeaders(raw json.RawMessage) (http.Header, error) {
	h := http.Header{}
	if string(raw) == "null" {
		return h, nil
	}
	var err error
	if object.Each(raw, func(name string, value []byte) bool {
		text, ok := object.Text(value)
		switch canonical := textproto.CanonicalMIMEHeaderKey(name); canonical {
		case keyHeader, "If-Match", "If-None-Match":
			h.Add(canonical, text)
		default:
			err = errs.New(errs.Invalid,
				"the header %q is not supported in a batch: If-Match, If-None-Match and %s are",
				httpkit.Truncate(name, 64), wire.HeaderKey)
		}
		if !ok {
			err = errHeaders
		}
		return err == nil
	}) != nil {
		err = errHeaders
	}
	return h, err
}

// route returns the resource and the uuid that a path names.
func (all *Resources) route(method, path string) (r *resource, uuid string, err error) {
	if strings.ContainsAny(path, "?#") {
		return nil, "", errs.New(errs.Invalid,
			"the path of an operation can't have a query: a batch can't list objects")
	}
	for _, candidate := range all.all {
		if path == candidate.url {
			return candidate, "", candidate.allows(method, true)
		}
	}
	base, last := "", ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		base, last = path[:i], path[i+1:]
	}
	for _, candidate := range all.all {
		if base != candidate.url || last == "" {
			continue
		}
		if uuid, err = url.PathUnescape(last); err != nil {
			return nil, "", errs.New(errs.Invalid, "the path is not properly percent-encoded")
		}
		if err := candidate.allows(method, false); err != nil {
			return nil, "", err
		}
		return candidate, uuid, object.CheckUUID(uuid)
	}
	return nil, "", errs.New(errs.NotFound, "no store is exposed at this path")
}

// allows returns the error of a method that a collection, or an object, does not support.
func (r *resource) allows(method string, collection bool) error {
	methods := map[string]bool{http.MethodPost: !r.restrict.Create}
	if !collection {
		methods = map[string]bool{
			http.MethodGet: !r.restrict.Get, http.MethodPut: !r.restrict.Update, http.MethodPatch: !r.restrict.Update,
			http.MethodDelete: !r.restrict.Delete,
		}
	}
	if methods[method] {
		return nil
	}
	_, known := methods[method]
	maps.DeleteFunc(methods, func(_ string, has bool) bool { return !has })
	if len(methods) == 0 {
		return errs.New(errs.NotFound, "no store is exposed at this path")
	}
	refused := httpkit.NotAllowed{Methods: strings.Join(slices.Sorted(maps.Keys(methods)), ", ") + " in a batch"}
	if known {
		refused.Why = unexposed(r.store.Name(), method)
	}
	return refused
}
