package intercept

import (
	"bytes"
	"encoding/json"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
)

// maxOverhead is the size limit of a request without its objects.
const maxOverhead = 8 << 10

// encode encodes a request to the interceptors of a name in at most limit bytes. If it is too large, encode omits
// first the mapped arrays, which no client writes, and then the stored object; the request says so. It never
// omits the object of the operation, because an interceptor that finds no reason to refuse allows. A request that
// is still too large fails with TooLarge.
func encode(r interceptor.Request, name string, arrays []string, limit int) ([]byte, error) {
	room := limit - maxOverhead
	if size(r) > room {
		var err error
		if r.Object, r.Stored, r.ArraysOmitted, err = withoutArrays(r.Object, r.Stored, arrays); err != nil {
			return nil, err
		}
	}
	if size(r) > room && len(r.Stored) > 0 {
		r.Stored, r.StoredOmitted = nil, true
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // six bytes for each <, > and & would let a client choose how large the request is
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	if body.Len() > limit {
		return nil, errs.New(errs.TooLarge,
			"the interceptor %s must allow this operation, but the request to it would have %d bytes and the bus "+
				"carries %d: make the object smaller",
			name, body.Len(), limit)
	}
	return body.Bytes(), nil
}

func size(r interceptor.Request) int { return len(r.Object) + len(r.Stored) + len(r.Datas) }

// withoutArrays returns both objects without the arrays, and the names of those that
// one of them had.
func withoutArrays(next, stored []byte, arrays []string) (_, _ []byte, omitted []string, _ error) {
	remove := func(body []byte) ([]byte, error) {
		if len(body) == 0 {
			return body, nil
		}
		o, err := object.Decode(body)
		if err != nil {
			return nil, err
		}
		for _, name := range arrays {
			if _, has := o[name]; !has {
				continue
			}
			delete(o, name)
			if !slices.Contains(omitted, name) {
				omitted = append(omitted, name)
			}
		}
		return o.Encode(), nil
	}
	next, err := remove(next)
	if err != nil {
		return nil, nil, nil, err
	}
	stored, err = remove(stored)
	return next, stored, omitted, err
}
