package binary

import (
	"encoding/json"
	"strconv"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Record describes a binary. An object has it in an array.
type Record struct {
	Hash     string        `json:"hash"` // SHA-256, lower-case hexadecimal
	Name     string        `json:"name"` // for display, never a path; may be ""
	Size     int64         `json:"size"`
	Mimetype string        `json:"mimetype"`
	Created  string        `json:"created"` // RFC 3339, UTC, microseconds
	Metadata object.Object `json:"metadata"`
}

func timestamp(t time.Time) string { return object.FormatTime(t) }

// MarshalJSON encodes the record in the stored form.
func (r Record) MarshalJSON() ([]byte, error) { return r.encode(), nil }

func (r Record) encode() []byte {
	dst := object.AppendString([]byte(`{"hash":`), r.Hash)
	dst = object.AppendString(append(dst, `,"name":`...), r.Name)
	dst = strconv.AppendInt(append(dst, `,"size":`...), r.Size, 10)
	dst = object.AppendString(append(dst, `,"mimetype":`...), r.Mimetype)
	dst = object.AppendString(append(dst, `,"created":`...), r.Created)
	dst = append(append(dst, `,"metadata":`...), r.Metadata.Encode()...)
	return append(dst, '}')
}

func decodeRecord(raw []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(raw, &r)
	return r, errs.Wrap(err, errs.Internal, "a record of a binary can't be decoded")
}
