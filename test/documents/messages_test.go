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

// messages is an AsyncAPI document with a judge for each schema in it.
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
	judges map[string]*schema.Schema
	met    map[string]bool // messages
}

type reference struct {
	To string `json:"$ref"`
}

// name is the last part of what is referred to.
func (r reference) name() string { return r.To[strings.LastIndexByte(r.To, '/')+1:] }

type channel struct {
	Address  *string
	Messages map[string]reference
	pattern  *regexp.Regexp
}

// readMessages asks a belfry for its document.
func readMessages(t *testing.T, url string) *messages {
	t.Helper()
	_, text := get(t, url+"/asyncapi.json", nil)
	m := &messages{t: t, judges: map[string]*schema.Schema{}, met: map[string]bool{}}
	if err := json.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for _, c := range m.Channels {
		if c.Address != nil {
			c.pattern = regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(*c.Address), `[^.]+`) + "$")
		}
	}
	return m
}

// judge judges a document by a schema of a message, "" when it is right.
func (m *messages) judge(message, part string, text json.RawMessage, doc []byte) string {
	m.t.Helper()
	key := message + " " + part
	if m.judges[key] == nil {
		definitions := map[string]json.RawMessage{}
		m.collect(text, definitions)
		whole, err := json.Marshal(map[string]any{
			"$schema": "http://json-schema.org/draft-07/schema#", "allOf": []json.RawMessage{text}, "definitions": definitions,
		})
		if err != nil {
			m.t.Fatalf("%s: %v", key, err)
		}
		judge, err := schema.Compile(key, bytes.ReplaceAll(whole, []byte("#/components/schemas/"), []byte("#/definitions/")))
		if err != nil {
			m.t.Fatalf("%s: %v", key, err)
		}
		m.judges[key] = judge
	}
	if err := m.judges[key].Validate(m.t.Context(), doc); err != nil {
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

// is reports why a message is not of a kind, "" when it is.
func (m *messages) is(kind string, header nats.Header, data []byte) string {
	m.t.Helper()
	k, known := m.Components.Messages[kind]
	if !known {
		return "there is no message " + kind
	}
	if why := m.judge(kind, "payload", k.Payload, data); why != "" {
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
	return m.judge(kind, "headers", k.Headers, text)
}

// heard holds a message against the channel of its subject: it must be one of
// those that the channel has, and none of the others.
func (m *messages) heard(subject string, header nats.Header, data []byte) {
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
		m.t.Errorf("%s: a message is %v, not one of those that the document tells: %v %s\n%s", what, kinds, header, data, strings.Join(reasons, "\n"))
		return
	}
	m.met[kinds[0]] = true
}

// internal reports whether an event is of a store that is not described.
func internal(data []byte) bool {
	var e struct{ Store string }
	return json.Unmarshal(data, &e) == nil && config.Internal(e.Store)
}

// unmet are the messages that never came.
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
