package bus

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Setting is a setting of a stream or a consumer that belfry depends on.
type Setting struct {
	Key string // as in the server's API

	// Without is the risk while it is not as wanted; "" if no promise depends on it.
	Without string

	// OK reports whether a value is as good as the wanted one; nil: only an equal one is.
	OK func(have, want any) bool

	// Fixed reports whether the server changes it only by deleting and creating the stream or consumer again; nil: it
	// changes it.
	Fixed func(have, want any) bool

	// Unusable says that a stream or consumer with another value can't be used.
	Unusable bool
}

// Always is a Setting.Fixed of a setting that the server never changes.
func Always(_, _ any) bool { return true }

// streamSettings are the settings of streams that belfry decides. An administrator decides about keptSettings.
var streamSettings = []Setting{
	{Key: "subjects", Without: "events of subjects that it does not take are not stored"},
	{Key: "storage", Without: "what it has is lost when its server restarts", Fixed: Always},
	{Key: "retention", Without: "messages are removed before a listener has handled them, or kept although one has",
		Fixed: fixedRetention},
	{Key: "discard", Without: "when it is full, it refuses or removes the wrong messages"},
	{Key: "discard_new_per_subject", Without: "it refuses events of objects that it has events of"},
	{Key: "max_age", Without: "messages are kept for another time than configured"},
	{Key: "max_bytes", Without: "it keeps another number of bytes than configured"},
	{Key: "max_msgs", Without: "it keeps another number of messages than configured"},
	{Key: "max_msgs_per_subject", Without: "events of an object are removed before a listener has handled them"},
	{Key: "max_msg_size", Without: "larger events are never stored", OK: largeEnough},
	{Key: "duplicate_window", Without: "what is published again is stored again"},
	{Key: "no_ack", Without: "it does not say whether an event is stored"},
	{Key: "sealed", Without: "it takes no messages", Fixed: Always},
	{Key: "deny_delete", Without: "dead letters can be neither retried nor dropped", Fixed: Always},
	{Key: "mirror", Without: "it takes no messages but those of another stream", Fixed: Always},
	{Key: "sources", Without: "it has messages that belfry has not published"},
	{Key: "subject_transform", Without: "events get subjects that no listener selects"},
	{Key: "republish", Without: "events reach subscribers who need not be those that may receive them"},
	{Key: "allow_rollup_hdrs", Without: "one message can remove all others"},
	{Key: "subject_delete_marker_ttl", Without: "it has messages that are no events"},
	{Key: "allow_msg_counter", Without: "it takes numbers alone", Fixed: Always},
	{Key: "allow_msg_schedules",
		Without: "messages are delivered later than they were published, and one can remove others", Fixed: Always},
	{Key: "persist_mode", Without: "an event is acknowledged before it is on disk", Fixed: Always},
	{Key: "consumer_limits",
		Without: "the position of a listener that is stopped is removed, or a listener gets no consumer"},
	{Key: "allow_direct", Without: "the log can't be read in pages"},
	{Key: "allow_batched",
		Without: "events are published one by one, or, with replicas, acknowledged before they are stored"},
	{Key: "num_replicas", Without: "it does not survive the loss of as many servers as configured"},
	{Key: "description"},
}

// keptSettings are settings of streams that an administrator may choose, and why no promise depends on them.
var keptSettings = map[string]string{
	"name":           "it is how the stream is found",
	"max_consumers":  "a listener that gets no consumer says so",
	"placement":      "where it is does not matter",
	"compression":    "it is what disk space costs",
	"first_seq":      "sequences only grow",
	"mirror_direct":  "it is for mirrors",
	"metadata":       "it is for people",
	"template_owner": "servers no longer have it",
	"deny_purge":     "belfry purges no stream that it serves",
	"allow_msg_ttl":  "only a message that asks for it gets a lifetime, and no event does",
	"allow_atomic":   "belfry does not use it",
}

// fixedRetention is the server's rule.
func fixedRetention(have, want any) bool {
	return have == jetstream.WorkQueuePolicy || want == jetstream.WorkQueuePolicy
}

// largeEnough accepts a limit of the size of a message that none of belfry's reaches.
func largeEnough(have, want any) bool {
	size, _ := have.(int32)
	return have == want || size >= MaxPayload
}

// Settle compares have with want by a table, adds the settings that differ to the difference, and returns have with
// the changeable settings as wanted.
func Settle[C any](d *Diff, table []Setting, have, want C) C {
	merged := have
	for _, s := range table {
		is, wants := field(reflect.ValueOf(&have), s.Key), field(reflect.ValueOf(&want), s.Key)
		if reflect.DeepEqual(is.Interface(), wants.Interface()) ||
			s.OK != nil && s.OK(is.Interface(), wants.Interface()) {
			continue
		}
		d.Differ(s, shown(is), shown(wants))
		if s.Fixed != nil && s.Fixed(is.Interface(), wants.Interface()) {
			d.Fixed = append(d.Fixed, s.Key)
			continue
		}
		field(reflect.ValueOf(&merged), s.Key).Set(wants)
	}
	return merged
}

// field returns the field of a configuration that has a key in JSON.
func field(config reflect.Value, key string) reflect.Value {
	config = config.Elem()
	for i := range config.NumField() {
		if name, _, _ := strings.Cut(config.Type().Field(i).Tag.Get("json"), ","); name == key {
			return config.Field(i)
		}
	}
	panic("no setting has the name " + key)
}

// shown is a value for people.
func shown(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "none"
		}
		return "one"
	case reflect.Slice:
		if words, ok := v.Interface().([]string); ok && len(words) > 0 {
			return strings.Join(words, " ")
		}
		if v.Len() == 0 {
			return "none"
		}
		return fmt.Sprint(v.Len())
	default:
		return fmt.Sprintf("%v", v.Interface())
	}
}
