package storetest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"belfry/pkg/store/driver"
)

// keyedRecord is a record of the model, which a store should have.
type keyedRecord struct {
	uuid string
	doc  *doc
}

// matches returns the records that meet the conditions, in the order of a query.
func matches(records []keyedRecord, q driver.Query, conditions []driver.KeyCondition) []string {
	type match struct{ order, uuid string }
	var found []match
	for _, r := range records {
		for _, key := range r.doc.Keys {
			if inQuery(key, q) && !slices.ContainsFunc(conditions,
				func(c driver.KeyCondition) bool { return !meets(r.doc, key.Parts[len(q.Equal):], c) }) {
				found = append(found, match{orderOf(key.Parts), r.uuid})
			}
		}
	}
	slices.SortFunc(found,
		func(a, b match) int { return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.uuid, b.uuid)) })
	found = slices.Compact(found)
	if q.Descending {
		slices.Reverse(found)
	}
	uuids := []string{}
	for _, m := range found {
		uuids = append(uuids, m.uuid)
	}
	return uuids
}

// orderOf encodes parts so that their order is that of the texts: the parts of these tests have no more than one byte.
func orderOf(parts [][]byte) string {
	var order []byte
	for _, part := range parts {
		order = append(binary.BigEndian.AppendUint16(order, uint16(len(part))), part...)
	}
	return string(order)
}

func inQuery(key driver.Key, q driver.Query) bool {
	if key.Index != q.Index || !slices.EqualFunc(key.Parts[:len(q.Equal)], q.Equal, bytes.Equal) {
		return false
	}
	if q.From == nil && q.To == nil {
		return true
	}
	part := key.Parts[len(q.Equal)]
	return bytes.Compare(part, q.From) >= 0 && (q.To == nil || bytes.Compare(part, q.To) < 0)
}

func meets(d *doc, rest [][]byte, c driver.KeyCondition) bool {
	return slices.ContainsFunc(d.Keys, func(key driver.Key) bool {
		return key.Index == c.Index && slices.ContainsFunc(c.Equal, func(equal [][]byte) bool {
			return slices.EqualFunc(key.Parts, slices.Concat(equal, rest), bytes.Equal)
		})
	})
}
