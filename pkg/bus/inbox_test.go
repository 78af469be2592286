package bus_test

import (
	"testing"

	"belfry/pkg/bus"
)

func TestInboxes(t *testing.T) {
	for subject, want := range map[string]bool{
		"_INBOX.a.b": true, "_INBOX_client.a": true, "_R_.abc": true, "_GR_.c.s._INBOX.a": true,
		"_GR_.c.s.events.1": false, "_GR_.c._INBOX.a": false, "events._INBOX": false, "": false, "inbox.a": false,
	} {
		if bus.IsInbox(subject) != want {
			t.Errorf("%q: %t", subject, !want)
		}
	}
}
