package record

import (
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// The indexes of API keys among sessions, by the time of their last use and of their end.
const (
	KeysByUse    = "keys-used-1"
	KeysByExpiry = "keys-expires-1"
)

// neverUsed comes before all times.
const neverUsed = "-"

// SessionIndexes are the indexes of API keys.
func SessionIndexes() []store.KeyIndex {
	return []store.KeyIndex{
		{Name: KeysByUse, Parts: 1, Keys: func(body []byte) [][][]byte { return keyOf(body, "lastUsed") }},
		{Name: KeysByExpiry, Parts: 1, Keys: func(body []byte) [][][]byte { return keyOf(body, "expires") }},
	}
}

// keyOf returns the time in a field of an API key; nothing of other sessions.
func keyOf(body []byte, field string) [][][]byte {
	values := object.Values(body, []string{"type", field})
	if kind, _ := object.Text(values[0]); kind != KeyType {
		return nil
	}
	at, _ := object.Text(values[1])
	if Time(at).IsZero() {
		at = neverUsed
	}
	return [][][]byte{{[]byte(at)}}
}
