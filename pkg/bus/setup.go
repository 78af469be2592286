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

// State is how a stream or a consumer was found, and what became of it.
type State string

// The states. A check finds Missing and Differs; a setup makes others of them.
const (
	Right   State = "right"
	Made    State = "made"
	Changed State = "changed"
	Missing State = "missing"
	Differs State = "differs"
)

// Finding tells of one stream or consumer.
type Finding struct {
	What   string // "stream EVENTS"
	State  State
	Keys   []string // the settings that differ, or differed
	Detail string   // how
}

// Lacks reports whether it is not as it should be.
func (f Finding) Lacks() bool { return f.State == Missing || f.State == Differs }

// Difference notes a setting that is not as it should be.
func (f *Finding) Difference(key string, have, want any) {
	if reflect.DeepEqual(have, want) {
		return
	}
	if f.Detail != "" {
		f.Detail += ", "
	}
	f.Keys = append(f.Keys, key)
	f.Detail += fmt.Sprintf("%s %v instead of %v", key, have, want)
}

// Requests is what setting up needs of a bus; *Bus and *Client are one.
type Requests interface {
	JetStream() jetstream.JetStream
	Asking(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)
}

// SetupStreams makes the streams, or brings them to what is configured; with
// check it only looks. It stops at the first that it can't set up.
func SetupStreams(ctx context.Context, r Requests, events Limits, replicas int, check bool) ([]Finding, error) {
	var all []Finding
	for _, want := range Streams(events) {
		found, err := setupStream(ctx, r, want, replicas, check)
		if err != nil {
			return all, errs.Wrap(err, errs.Unavailable, "%s can't be set up", found.What)
		}
		all = append(all, found)
	}
	return all, nil
}

// setupStream changes nothing when nothing differs. Its error says what it wants
// and can't get.
func setupStream(ctx context.Context, r Requests, want jetstream.StreamConfig, replicas int, check bool) (Finding, error) {
	js, f := r.JetStream(), Finding{What: "stream " + want.Name, State: Right}
	ctx, done := r.Asking(ctx, apiStream+"INFO."+want.Name, apiStream+"CREATE."+want.Name, apiStream+"UPDATE."+want.Name)
	defer done()
	stream, err := look(ctx, js, want.Name)
	changing, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		f.State = Missing
		if check {
			return f, nil
		}
		want.Replicas = max(replicas, 1)
		return f.done(Made, Explain(ctx, createStream(changing, js, want), "it is missing and can't be made", RunSetup))
	}
	if err != nil {
		return f, Explain(ctx, err, "it can't be looked at", "")
	}
	have := stream.CachedInfo().Config
	merged := mergeStream(have, want)
	merged.AllowBatchPublish = want.AllowBatchPublish && (have.AllowBatchPublish || takesBatches(js.Conn()))
	if replicas > 0 {
		merged.Replicas = replicas
	}
	if f.compare(have, merged); len(f.Keys) == 0 {
		return f, nil
	}
	f.State = Differs
	if check {
		return f, nil
	}
	_, err = js.UpdateStream(changing, merged)
	return f.done(Changed, Explain(ctx, err, "it differs ("+f.Detail+") and can't be changed", RunSetup))
}

// look asks for a stream until there is an answer, but not for ever.
func look(ctx context.Context, js jetstream.JetStream, name string) (stream jetstream.Stream, err error) {
	for range lookTries {
		asking, cancel := context.WithTimeout(ctx, lookTimeout)
		stream, err = js.Stream(asking, name)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || !js.Conn().IsConnected() {
			break
		}
	}
	return stream, err
}

// takesBatches reports whether a server is new enough to know batches.
func takesBatches(c *nats.Conn) bool {
	var major, minor int
	_, err := fmt.Sscanf(c.ConnectedServerVersion(), "%d.%d", &major, &minor)
	return err == nil && (major > 2 || major == 2 && minor >= 14)
}

// done is the finding once the request to make it so has been answered.
func (f Finding) done(state State, err error) (Finding, error) {
	if err == nil {
		f.State = state
	}
	return f, err
}

// Explain says what a request was for that failed under a context of Asking,
// and what helps a user who may not.
func Explain(ctx context.Context, err error, what, help string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), ErrRefused):
		if help != "" {
			help = "; " + help
		}
		return fmt.Errorf("%s: %w%s", what, ErrRefused, help)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the bus gives no answer: %w", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// Lack is errs.Unavailable for something that a bus does without. Where it is a
// right that lacks, its message says that too: it tells nothing of the server.
func Lack(err error, what string) error {
	if errors.Is(err, ErrRefused) {
		return errs.New(errs.Unavailable, "%s: %v", what, err)
	}
	return errs.Wrap(err, errs.Unavailable, "%s", what)
}

// codeUnknownField is what a strict server answers to a setting that it is too
// old to know.
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

// mergeStream sets what belfry decides and leaves what an administrator may
// have chosen otherwise (placement, compression, ...).
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

// compare notes what mergeStream and the number of copies would change.
func (f *Finding) compare(have, want jetstream.StreamConfig) {
	f.Difference("subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " "))
	f.Difference("description", have.Description, want.Description)
	f.Difference("discard", have.Discard, want.Discard)
	f.Difference("max_age", have.MaxAge, want.MaxAge)
	f.Difference("max_bytes", have.MaxBytes, want.MaxBytes)
	f.Difference("max_msgs", have.MaxMsgs, want.MaxMsgs)
	f.Difference("duplicate_window", have.Duplicates, want.Duplicates)
	f.Difference("allow_batched", have.AllowBatchPublish, want.AllowBatchPublish)
	f.Difference("allow_direct", have.AllowDirect, want.AllowDirect)
	f.Difference("replicas", have.Replicas, want.Replicas)
}
