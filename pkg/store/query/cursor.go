package query

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"belfry/pkg/errs"
)

// maxCursor is the length limit of a cursor, in characters. A driver's
// place in an index is four parts and a uuid, and a cursor has one for each of maxReads.
const maxCursor = 64 << 10

// fingerprint binds cursors to the listing that they continue. It guards
// against mistakes, not malice: a client can make up a cursor, and a driver
// has to bear any bytes in Query.After.
type fingerprint [8]byte

func fingerprintOf(filter, sort string, indexes []string) fingerprint {
	h := fnv.New64a()
	write := func(s string) {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(s))))
		_, _ = h.Write([]byte(s))
	}
	write(filter)
	write(sort)
	for _, name := range indexes {
		write(name)
	}
	return fingerprint(h.Sum(nil))
}

// Cursor writes the place where the next page begins as text for a client:
// opaque and safe in a URL. It is "" for a nil place.
func (p *Plan) Cursor(next []byte) string {
	if next == nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(append(p.fingerprint[:], next...))
}

// After returns the place that a cursor of the same filter and sort order
// holds, nil for "". Anything else is an errs.Invalid.
func (p *Plan) After(cursor string) ([]byte, error) {
	if cursor == "" {
		return nil, nil
	}
	if len(cursor) > maxCursor {
		return nil, errs.New(errs.Invalid, "cursor: longer than any valid one")
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || strings.ContainsAny(cursor, "\r\n") { // which the decoder overlooks
		return nil, errs.New(errs.Invalid, "cursor: invalid; start again without it")
	}
	place, ours := bytes.CutPrefix(data, p.fingerprint[:])
	if !ours || len(place) == 0 {
		return nil, errs.New(errs.Invalid, "cursor: it belongs to a listing with another filter or sort order; start "+
			"again without it")
	}
	return place, nil
}
