package documents

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/pkg/store/schema"
)

// messages is an AsyncAPI document with a validator for each schema in it.
type messages struct {
	t          *testing.T
	Channels   map[string]*channel
	Operations map[string]struct {
		Channel reference
		Reply   struct{ Channel reference }
	}
	Components struct {
		Messages map[string]struct{ Headers, Payload json.RawMessage }
		Schemas  map[string]json.RawMessage
	}
	validators map[string]*schema.Schema
	met        map[string]bool // messages
}

type reference struct {
	To string `json:"$ref"`
}

// name returns the last part of the reference.
func (r reference) name() string { return r.To[strings.LastIndexByte(r.To, '/')+1:] }

type channel struct {
	Address  *string
	Messages map[string]reference
	pattern  *regexp.Regexp
}

// readMessages reads the document of a belfry.
func readMessages(t *testing.T, url string) *messages {
	t.Helper()
	_, text := get(t, url+"/asyncapi.json", nil)
	m := &messages{t: t, validators: map[string]*schema.Schema{}, met: map[string]bool{}}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for _, c := range m.Channels {
		if c.Address != nil {
			c.pattern = regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(*c.Address), `[^.]+`) +
				"$")
		}
	}
	return m
}

// validate validates a document against a schema of a message; "" means valid.
func (m *messages) validate(message, part string, text json.RawMessage, doc []byte) string {
	m.t.Helper()
	key := message + " " + part
	if m.validators[key] == nil {
		definitions := map[string]json.RawMessage{}
		m.collect(text, definitions)
		whole, err := json.Marshal(map[string]any{
			"$schema": "http://json-schema.org/draft-07/schema#", "allOf": []json.RawMessage{text},
			"definitions": definitions,
		})
		if err != nil {
			m.t.Fatalf("%s: %v", key, err)
		}
		validator, err := schema.Compile(key,
			bytes.ReplaceAll(whole, []byte("#/components/schemas/"), []byte("#/definitions/")))
		if err != nil {
			m.t.Fatalf("%s: %v", key, err)
		}
		m.validators[key] = validator
	}
	if err := m.validators[key].Validate(m.t.Context(), doc); err != nil {
		return err.Error()
	}
	return ""
}

var component = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// collect adds the schemas that a text refers to.
func (m *messages) collect(text []byte, into map[string]json.RawMessage) {
	m.t.Helper()
	for _, found := range component.FindAllSubmatch(text, -1) {
		name := string(found[1])
		if into[name] != nil {
			continue
		}
		if into[name] = m.Components.Schemas[name]; into[name] == nil {
			m.t.Fatalf("there is no schema %s", name)
		}
		m.collect(into[name], into)
	}
}

// is returns why a message is not of a kind; "" means that it is.
func (m *messages) is(kind string, header nats.Header, data []byte) string {
	m.t.Helper()
	k, known := m.Components.Messages[kind]
	if !known {
		return "there is no message " + kind
	}
	if why := m.validate(kind, "payload", k.Payload, data); why != "" {
		return why
	}
	if k.Headers == nil {
		return ""
	}
	first := map[string]string{}
	for name, values := range header {
		first[name] = values[0]
	}
	text, err := json.Marshal(first)
	if err != nil {
		m.t.Fatal(err)
	}
	return m.validate(kind, "headers", k.Headers, text)
}

// check validates a message against the channel of its subject: it must be valid
// as exactly one message of the channel.
func (m *messages) check(subject string, header nats.Header, data []byte) {
	m.t.Helper()
	var found *channel
	for _, c := range m.Channels {
		if c.pattern != nil && c.pattern.MatchString(subject) {
			if found != nil {
				m.t.Errorf("%s is the subject of several channels", subject)
			}
			found = c
		}
	}
	if found == nil {
		m.t.Errorf("no channel has the subject %s: %s", subject, data)
		return
	}
	m.one(subject, found, header, data)
}

func (m *messages) one(what string, c *channel, header nats.Header, data []byte) {
	m.t.Helper()
	var kinds, reasons []string
	for kind := range c.Messages {
		if why := m.is(kind, header, data); why == "" {
			kinds = append(kinds, kind)
		} else {
			reasons = append(reasons, kind+": "+why)
		}
	}
	if len(kinds) != 1 {
		slices.Sort(reasons)
		m.t.Errorf("%s: a message is valid as %v, want exactly one of the documented messages: %v %s\n%s", what, kinds,
			header, data, strings.Join(reasons, "\n"))
		return
	}
	m.met[kinds[0]] = true
}

// internal reports whether an event is of a store that is not documented.
func internal(data []byte) bool {
	var e struct{ Store string }
	return json.Unmarshal(data, &e) == nil && config.Internal(e.Store)
}

// unmet returns the messages that were never published.
func (m *messages) unmet() (all []string) {
	for _, c := range m.Channels {
		for kind := range c.Messages {
			if !m.met[kind] && !slices.Contains(all, kind) {
				all = append(all, kind)
			}
		}
	}
	slices.Sort(all)
	return all
}
