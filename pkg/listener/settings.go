package listener

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// consumerSettings are the settings of consumers that belfry decides, beside its filter and a pause. An administrator
// decides about keptSettings.
var consumerSettings = []bus.Setting{
	{Key: "ack_policy", Without: "events count as handled that are not", Fixed: bus.Always, Unusable: true},
	{Key: "ack_wait",
		Without:  "events of a process that has ended are redelivered too late, or those of one that runs too early",
		Unusable: true},
	{Key: "max_deliver", Without: "events are given up", Unusable: true},
	{Key: "max_ack_pending", Without: "a few events that fail keep all others", Unusable: true},
	{Key: "backoff", Without: "events are redelivered while they are handled", Unusable: true},
	{Key: "max_batch", Without: "its requests are refused", Unusable: true},
	{Key: "max_expires", Without: "its requests are refused", Unusable: true},
	{Key: "max_bytes", Without: "its requests are refused", Unusable: true},
	{Key: "headers_only", Without: "it receives events without their content", Unusable: true},
	{Key: "deliver_subject", Without: "the bus pushes events to all subscribers, and a listener can't request them",
		Fixed: bus.Always, Unusable: true},
	{Key: "priority_groups", Without: "its requests are refused", Unusable: true},
	{Key: "priority_policy", Without: "its requests are refused", Unusable: true},
	{Key: "priority_timeout", Without: "its requests are refused", Unusable: true},
	{Key: "max_waiting", Without: "requests of some processes are refused", OK: waitsLong, Fixed: bus.Always},
	{Key: "replay_policy", Without: "events are delayed", Fixed: bus.Always},
	{Key: "deliver_policy", Without: "it began without the events before", OK: anyPosition, Fixed: bus.Always},
	{Key: "inactive_threshold", Without: "its position is removed while it is stopped"},
	{Key: "mem_storage", Without: "its position is lost when the bus restarts", Fixed: bus.Always},
	{Key: "num_replicas", Without: "its position is on fewer servers than the events"},
}

// The settings that are not compared by a field.
var (
	filterSetting = bus.Setting{Key: "filter", Without: "it receives other events than it selects", Unusable: true}
	pauseSetting  = bus.Setting{Key: "pause_until",
		Without: "it is paused and receives nothing; `belfry bus setup` resumes it"}
)

// keptSettings are settings of consumers that an administrator may choose, and why no promise depends on them.
var keptSettings = map[string]string{
	"name":            "it is how the consumer is found",
	"durable_name":    "it is how the consumer is found",
	"description":     "it is for people",
	"metadata":        "it is for people",
	"opt_start_seq":   "it is the position at which it began",
	"opt_start_time":  "it is the position at which it began",
	"sample_freq":     "it is for monitoring",
	"rate_limit_bps":  "it is for consumers with a deliver_subject",
	"deliver_group":   "it is for consumers with a deliver_subject",
	"idle_heartbeat":  "it is for consumers with a deliver_subject",
	"flow_control":    "it is for consumers with a deliver_subject",
	"filter_subject":  "it is compared as the filter",
	"filter_subjects": "it is compared as the filter",
	"pause_until":     "it is compared where the time counts",
}

// maxWaiting is the server's default for how many requests may wait.
const maxWaiting = 512

func waitsLong(have, _ any) bool {
	n, _ := have.(int)
	return n == 0 || n >= maxWaiting
}

// anyPosition accepts every start after which all events follow.
func anyPosition(have, _ any) bool {
	return have != jetstream.DeliverLastPolicy && have != jetstream.DeliverLastPerSubjectPolicy
}

// settle compares the settings of a consumer, and returns them with the changeable ones as wanted.
func settle(d *bus.Diff, have, want jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	filtered := slices.Equal(subjects(have), subjects(want))
	if !filtered {
		d.Differ(filterSetting, strings.Join(subjects(have), " "), strings.Join(subjects(want), " "))
	}
	want.MaxWaiting = maxWaiting
	merged := bus.Settle(d, consumerSettings, have, want)
	if !filtered {
		merged.FilterSubject, merged.FilterSubjects = want.FilterSubject, want.FilterSubjects
	}
	return merged
}

// tolerates reports whether a listener can do its work with a consumer that can't be updated: it differs in nothing
// that keeps the listener from that, or selects events of event.Auth as well, which selects leaves out.
func tolerates(err error, d bus.Diff, have, want jetstream.ConsumerConfig) bool {
	if !errors.Is(err, bus.ErrPermissionDenied) && !errors.Is(err, errs.Denied) {
		return false
	}
	return !slices.ContainsFunc(d.Broken, func(s bus.Setting) bool {
		return s.Unusable && (s.Key != filterSetting.Key || !slices.Equal(withoutAuth(selected(have)), subjects(want)))
	})
}

// recreate returns the commands that delete a consumer and create it at its position.
func (r *runner) recreate(next uint64) []string {
	all := []string{"nats consumer rm " + r.stream + " " + r.consumer + " --force", "belfry bus setup"}
	if r.stream == stream {
		all = append(all, fmt.Sprintf("belfry listener reset %s --from %d", r.spec.Name, next))
	}
	return all
}
