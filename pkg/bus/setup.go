package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
)

// apiStream begins the subjects of requests about streams.
const apiStream = jetstream.DefaultAPIPrefix + "STREAM."

// State is the state of a stream or a consumer compared with its configuration.
type State string

// The states. A check reports Missing and Drifted; Setup turns them into Created
// and Updated.
const (
	InSync  State = "in sync"
	Created State = "created"
	Updated State = "updated"
	Missing State = "missing"
	Drifted State = "drifted"
)

// Diff compares one stream or consumer with its configuration.
type Diff struct {
	What   string // "stream EVENTS"
	State  State
	Keys   []string // the settings that differ, or differed
	Detail string   // how

	replicas int // of the stream, the larger number if it is being changed
}

// NeedsSetup reports whether it is missing or differs.
func (d Diff) NeedsSetup() bool { return d.State == Missing || d.State == Drifted }

// Compare adds a setting when it is not as wanted.
func (d *Diff) Compare(key string, have, want any) {
	if reflect.DeepEqual(have, want) {
		return
	}
	if d.Detail != "" {
		d.Detail += ", "
	}
	d.Keys = append(d.Keys, key)
	d.Detail += fmt.Sprintf("%s %v instead of %v", key, have, want)
}

// Requester is the part of a bus that Setup uses; *Bus and *Client have it.
type Requester interface {
	JetStream() jetstream.JetStream
	UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)
}

// SetupStreams creates the streams, or updates them to what is configured; with
// check it changes nothing. It stops at the first that it can't set up.
func SetupStreams(ctx context.Context, r Requester, events Limits, replicas int, check bool) ([]Diff, error) {
	var all []Diff
	for _, want := range StreamConfigs(events) {
		found, err := setupStream(ctx, r, want, replicas, check)
		if err != nil {
			return all, errs.Wrap(err, errs.Unavailable, "%s can't be set up", found.What)
		}
		all = append(all, found)
	}
	return all, nil
}

// setupStream changes nothing when nothing differs. Its error says what is missing
// or differs.
func setupStream(ctx context.Context, r Requester, want jetstream.StreamConfig, replicas int, check bool) (Diff, error) {
	js, d := r.JetStream(), Diff{What: "stream " + want.Name, State: InSync}
	ctx, done := r.UntilDenied(ctx, apiStream+"INFO."+want.Name, apiStream+"CREATE."+want.Name, apiStream+"UPDATE."+want.Name)
	defer done()
	stream, err := getStream(ctx, js, want.Name)
	changing, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		d.State = Missing
		if check {
			return d, nil
		}
		want.Replicas = max(replicas, 1)
		want.AllowBatchPublish = want.AllowBatchPublish && want.Replicas == 1
		d.replicas = want.Replicas
		return d.done(Created, Explain(ctx, createStream(changing, js, want), "it is missing and can't be created", SetupHint))
	}
	if err != nil {
		return d, Explain(ctx, err, "it can't be read", "")
	}
	have := stream.CachedInfo().Config
	merged := mergeStream(have, want)
	if replicas > 0 {
		merged.Replicas = replicas
	}
	d.replicas = max(have.Replicas, merged.Replicas)
	merged.AllowBatchPublish = want.AllowBatchPublish && d.replicas <= 1 && (have.AllowBatchPublish || supportsBatches(js.Conn()))
	if d.compareStream(have, merged); len(d.Keys) == 0 {
		return d, nil
	}
	d.State = Drifted
	if check {
		return d, nil
	}
	_, err = js.UpdateStream(changing, merged)
	return d.done(Updated, Explain(ctx, err, "it differs ("+d.Detail+") and can't be updated", SetupHint))
}

// getStream reads a stream, with a few retries when there is no reply.
func getStream(ctx context.Context, js jetstream.JetStream, name string) (stream jetstream.Stream, err error) {
	for range getTries {
		attempt, cancel := context.WithTimeout(ctx, getTimeout)
		stream, err = js.Stream(attempt, name)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !js.Conn().IsConnected() {
			break
		}
	}
	return stream, err
}

// supportsBatches reports whether a server is new enough for batches.
func supportsBatches(c *nats.Conn) bool {
	var major, minor int
	_, err := fmt.Sscanf(c.ConnectedServerVersion(), "%d.%d", &major, &minor)
	return err == nil && (major > 2 || major == 2 && minor >= 14)
}

// done is the diff after the request to create or update it.
func (d Diff) done(state State, err error) (Diff, error) {
	if err == nil {
		d.State = state
	}
	return d, err
}

// Explain adds to the error of a request under a context of UntilDenied what the
// request was for, and a hint for a user who lacks the permission.
func Explain(ctx context.Context, err error, what, hint string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), ErrPermissionDenied):
		if hint != "" {
			hint = "; " + hint
		}
		return fmt.Errorf("%s: %w%s", what, ErrPermissionDenied, hint)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the bus does not respond: %w", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Unavailable is errs.Unavailable for something that the bus does not have. Its
// message includes a missing permission, which discloses nothing of the server.
func Unavailable(err error, what string) error {
	if errors.Is(err, ErrPermissionDenied) {
		return errs.New(errs.Unavailable, "%s: %v", what, err)
	}
	return errs.Wrap(err, errs.Unavailable, "%s", what)
}

// codeUnknownField is the reply of a strict server that is too old for a setting.
const codeUnknownField jetstream.ErrorCode = 10025

func createStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) error {
	_, err := js.CreateStream(ctx, want)
	var api *jetstream.APIError
	if want.AllowBatchPublish && errors.As(err, &api) && api.ErrorCode == codeUnknownField {
		want.AllowBatchPublish = false
		_, err = js.CreateStream(ctx, want)
	}
	return err
}

// mergeStream sets what belfry decides and keeps what an administrator may have
// set (placement, compression, ...).
func mergeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	have.Description = want.Description
	have.Subjects = want.Subjects
	have.Discard = want.Discard
	have.MaxAge = want.MaxAge
	have.MaxBytes = want.MaxBytes
	have.MaxMsgs = want.MaxMsgs
	have.Duplicates = want.Duplicates
	have.AllowBatchPublish = want.AllowBatchPublish
	have.AllowDirect = want.AllowDirect
	return have
}

// compareStream adds the settings that mergeStream and replicas would change.
func (d *Diff) compareStream(have, want jetstream.StreamConfig) {
	d.Compare("subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " "))
	d.Compare("description", have.Description, want.Description)
	d.Compare("discard", have.Discard, want.Discard)
	d.Compare("max_age", have.MaxAge, want.MaxAge)
	d.Compare("max_bytes", have.MaxBytes, want.MaxBytes)
	d.Compare("max_msgs", have.MaxMsgs, want.MaxMsgs)
	d.Compare("duplicate_window", have.Duplicates, want.Duplicates)
	d.Compare("allow_batched", have.AllowBatchPublish, want.AllowBatchPublish)
	d.Compare("allow_direct", have.AllowDirect, want.AllowDirect)
	d.Compare("replicas", have.Replicas, want.Replicas)
}
