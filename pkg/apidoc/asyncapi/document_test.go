package asyncapi_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/api/modeltest"
	"belfry/pkg/event"
)

func TestDocumentHasTheValuesOfTheConfiguration(t *testing.T) {
	security := logged(append(event.Auth(), event.ConfigChanged))
	for _, c := range []struct{ name, config, kind, of, want string }{
		{"events of a store", `stores: {A: {bus: false}}`, "channels", "A", "logADeleted logASaved logAUpdated"},
		{"operations", `stores: {A: {}}`, "operations", "A",
			"deleteA existsA getA listA logADeleted logASaved logAUpdated saveA updateA"},
		{"interceptors", `stores: {A: {bus: false, intercept: {save: [{name: x}, {name: not-me}]}}}`, "operations", "A",
			"askASaveNotMe askASaveX logADeleted logASaved logAUpdated"},
		{"files", `{stores: {A: {expose: {}, bus: false}}, binaries: {b: {}}}`, "channels", "A",
			"logADeleted logAFileDeleted logAFileUploaded logASaved logAUpdated"},
		{"users", `stores: {Users: {bus: false}}`, "channels",
			"Users", strings.Join(append(slices.Clone(security), "logUsersDeleted", "logUsersRegister", "logUsersSaved",
				"logUsersUpdated"), " ")},
		{"users of another name", `{authentication: {userStore: B}, stores: {B: {bus: false}, Users: {bus: false}}}`,
			"channels", "Users", "logUsersDeleted logUsersSaved logUsersUpdated"},
		{"belfry's own", ``, "channels", "Sessions", ""},
		{"the bus", ``, "servers", "bus", "bus"},
		{"several", `bus: {url: "nats://a:1,tls://b:2"}`, "servers", "bus", "bus bus2"},
		{"no port", `bus: {listen: ""}`, "servers", "bus", ""},
		{"a port that is not known", `bus: {listen: "127.0.0.1:0"}`, "servers", "bus", ""},
	} {
		var document map[string]json.RawMessage
		if err := json.Unmarshal(modeltest.AsyncAPI(t, c.config), &document); err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if document[c.kind] != nil {
			if err := json.Unmarshal(document[c.kind], &all); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for name := range all {
			own := c.of == "Users" || !slices.Contains(security, name)
			if strings.Contains(name, c.of) && own && !strings.HasSuffix(name, "Reply") &&
				!strings.HasPrefix(name, "live") {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: there are %v, want %s", c.name, got, c.want)
		}
	}
}

// logged returns the channels of events about users in the log, in the order of their names.
func logged(names []event.Name) (channels []string) {
	for _, name := range names {
		channels = append(channels, "logUsers"+strings.ReplaceAll(string(name), ".", ""))
	}
	slices.Sort(channels)
	return channels
}

// The events about the security of accounts are in the log alone, and each says what it is.
func TestEventsAboutTheSecurityOfAccountsAreNotLive(t *testing.T) {
	text := modeltest.AsyncAPI(t, `stores: {Users: {}}`)
	var document struct {
		Channels map[string]struct{ Address *string }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, c := range document.Channels {
		switch {
		case c.Address == nil || !strings.Contains(*c.Address, "Auth."):
		case strings.HasPrefix(*c.Address, "events.{partition}.Auth."):
			found++
		default:
			t.Errorf("%s has the address %s", name, *c.Address)
		}
	}
	if found != len(event.Auth()) {
		t.Errorf("there are %d channels of %d events", found, len(event.Auth()))
	}
}

func TestServersAreTheAddressesOfTheBus(t *testing.T) {
	for config, want := range map[string]string{
		``: `"host": "127.0.0.1:4222"`,
		`{bus: {listen: ":4333"}, baseURL: "https://example.org/x"}`: `"host": "example.org:4333"`,
		`bus: {url: "tls://b:2"}`:                                    `"host": "b:2"`,
		`bus: {url: "wss://b:2"}`:                                    `"protocol": "wss"`,
	} {
		if got := modeltest.AsyncAPI(t, config); !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s: there is no %s", config, want)
		}
	}
}

func TestDocumentIsReproducible(t *testing.T) {
	const text = `{stores: {A: {expose: {}}, B: {map: {A: {key: a, target: b}}}, C: {intercept: {save: [{name: x}], get: [{name: y}]}}}, binaries: {b: {map: {A: [q], B: [r]}}}}`
	first := modeltest.AsyncAPI(t, text)
	for range 20 {
		if !bytes.Equal(first, modeltest.AsyncAPI(t, text)) {
			t.Fatal("the same configuration has two documents")
		}
	}
}
