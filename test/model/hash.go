package model

import (
	"encoding/binary"
	"hash/maphash"

	"belfry/pkg/store/driver"
)

// seed makes hashes comparable within one run of the tests.
var seed = maphash.MakeSeed()

// hashRecord identifies a version of a record.
func hashRecord(r driver.Record) uint64 {
	b := make([]byte, 0, len(r.UUID)+len(r.Body)+10)
	b = append(b, r.UUID...)
	b = append(b, 0)
	b = binary.LittleEndian.AppendUint64(b, r.Revision)
	b = append(append(b, r.Owner...), 0)
	return maphash.Bytes(seed, append(b, r.Body...))
}

// mix adds a value to a hash; the order of values matters.
func mix(a, b uint64) uint64 {
	a ^= b + 0x9e3779b97f4a7c15 + a<<12 + a>>4
	a *= 0xff51afd7ed558ccd
	return a ^ a>>33
}

func mixText(a uint64, text string) uint64 { return mix(a, maphash.String(seed, text)) }
