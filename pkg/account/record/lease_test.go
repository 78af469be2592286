package record

import (
	"reflect"
	"testing"
	"time"

	"belfry/pkg/store"
)

// The leases of a refresh and of an export, as earlier versions have stored them, and read them.
func TestLeasesThatEarlierVersionsHaveStored(t *testing.T) {
	until := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	const held = `{"holder":"h","until":"2026-11-23T03:00:00Z"}`
	for text, want := range map[string]Lease{
		`{"uuid":"u","_refresh":` + held + `}`: {"h", until},
		`{"uuid":"u","_refresh":null}`:         {},
		`{"uuid":"u"}`:                         {},
	} {
		table := newTable[Ident](nil)
		i, err := table.Of(store.Stored{Body: []byte(text)})
		if err != nil || i.Lease != want {
			t.Errorf("%s: %+v, %v", text, i.Lease, err)
		}
		fields := table.codec.changes(i.meta(), reflect.ValueOf(&i).Elem())
		if _, changed := fields["_refresh"]; changed {
			t.Errorf("%s: written again: %s", text, fields["_refresh"])
		}
		i.Lease = Lease{"h", until}
		if got := string(table.codec.all(reflect.ValueOf(&i).Elem())["_refresh"]); got != held {
			t.Errorf("written as %s", got)
		}
		i.Lease = Lease{} // released
		fields = table.codec.changes(i.meta(), reflect.ValueOf(&i).Elem())
		if value, changed := fields["_refresh"]; changed != (want != Lease{}) || value != nil {
			t.Errorf("%s: released as %s", text, value)
		}
	}
	exports := newTable[Exports](nil)
	for text, want := range map[string]Exports{
		`{"uuid":"u","_export":"h","_leased":"2026-11-23T03:00:00.000000Z"}`: {Running: "h", Leased: until},
		`{"uuid":"u","_export":null,"_leased":null}`:                         {},
		`{"uuid":"u"}`: {},
	} {
		r, err := exports.Of(store.Stored{Body: []byte(text)})
		if err != nil || r.Running != want.Running || !r.Leased.Equal(want.Leased) {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	written := exports.codec.all(reflect.ValueOf(&Exports{Running: "h", Leased: until}).Elem())
	if string(written["_export"]) != `"h"` || string(written["_leased"]) != `"2026-11-23T03:00:00.000000Z"` {
		t.Errorf("written as %s", written)
	}
}
