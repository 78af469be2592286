package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
)

// apiStream begins the subjects of requests about streams.
const apiStream = jetstream.DefaultAPIPrefix + "STREAM."

// State is the state of a stream or a consumer compared with its configuration.
type State string

// The states. A check reports Missing and Drifted; Setup turns them into Created and
// Updated. Recreate means that the server can't change the settings that differ.
const (
	InSync   State = "in sync"
	Created  State = "created"
	Updated  State = "updated"
	Missing  State = "missing"
	Drifted  State = "drifted"
	Recreate State = "to be recreated"
)

// Diff compares one stream or consumer with its configuration.
type Diff struct {
	What   string // "stream EVENTS"
	State  State
	Keys   []string // the settings that differ, or differed
	Detail string   // how

	Fixed    []string  // those of Keys that the server does not change
	Broken   []Setting // those on which a promise depends
	Commands []string  // recreate it, if necessary

	replicas int // of the stream, the larger number if it is being changed
}

// NeedsSetup reports whether it is missing or differs.
func (d Diff) NeedsSetup() bool {
	return d.State == Missing || d.State == Drifted || d.State == Recreate
}

// Compare adds a setting when it is not as wanted.
func (d *Diff) Compare(key string, have, want any) {
	if !reflect.DeepEqual(have, want) {
		d.add(key, fmt.Sprint(have), fmt.Sprint(want))
	}
}

func (d *Diff) add(key, have, want string) {
	if d.Detail != "" {
		d.Detail += ", "
	}
	d.Keys = append(d.Keys, key)
	d.Detail += fmt.Sprintf("%s %s instead of %s", key, have, want)
}

// Differs sets the state of a stream or consumer with other settings than wanted; commands recreate it.
func (d Diff) Differs(commands []string) Diff {
	if d.State = Drifted; len(d.Fixed) > 0 {
		d.State, d.Commands = Recreate, commands
	}
	return d
}

// Unusable reports whether it can't be used until it is recreated.
func (d Diff) Unusable() bool {
	return d.State == Recreate &&
		slices.ContainsFunc(d.Broken, func(s Setting) bool { return s.Unusable && slices.Contains(d.Fixed, s.Key) })
}

// Differ adds a setting that is compared elsewhere and is not as wanted.
func (d *Diff) Differ(s Setting, have, want string) {
	d.add(s.Key, have, want)
	if s.Without != "" {
		d.Broken = append(d.Broken, s)
	}
}

// Shortcomings are the risks of the settings that differ. They are for everybody, so it has no values.
func (d Diff) Shortcomings() []string {
	var all []string
	for _, s := range d.Broken {
		all = append(all, fmt.Sprintf("%s has another %s than belfry needs: %s", d.What, s.Key, s.Without))
	}
	return all
}

// Requester is the part of a bus that Setup uses; *Bus and *Client have it.
type Requester interface {
	JetStream() jetstream.JetStream
	UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)
}

// SetupStreams creates the streams, or updates them to the configuration; with
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

// setupStream changes nothing when nothing differs. Its error names the missing or differing part.
func setupStream(ctx context.Context, r Requester, want jetstream.StreamConfig, replicas int,
	check bool) (Diff, error) {
	js, d := r.JetStream(), Diff{What: "stream " + want.Name, State: InSync}
	ctx, done := r.UntilDenied(ctx, apiStream+"INFO."+want.Name, apiStream+"CREATE."+want.Name,
		apiStream+"UPDATE."+want.Name)
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
		return d.done(Created,
			Explain(ctx, createStream(changing, js, want), "it is missing and can't be created", SetupHint))
	}
	if err != nil {
		return d, Explain(ctx, err, "it can't be read", "")
	}
	have := stream.CachedInfo().Config
	want = wanted(want, have, replicas, js.Conn())
	d.replicas = max(have.Replicas, want.Replicas)
	merged := Settle(&d, streamSettings, have, want)
	if len(d.Keys) == 0 {
		return d, nil
	}
	d = d.Differs(recreateStream(want.Name))
	if check || len(d.Keys) == len(d.Fixed) || have.Sealed || have.Mirror != nil {
		return d, nil
	}
	updated, err := js.UpdateStream(changing, merged)
	var api *jetstream.APIError
	if d.State == Recreate && errors.As(err, &api) {
		// The server refuses further settings with that one: a log in memory has no room for the limits of one on disk.
		return d, nil
	}
	if err != nil {
		return d, Explain(ctx, err, "it differs ("+d.Detail+") and can't be updated", SetupHint)
	}
	return d.updated(updated.CachedInfo().Config, want)
}

// updated is the difference after an update to which the server has replied with a configuration: it may leave
// things as they are without saying so.
func (d Diff) updated(have, want jetstream.StreamConfig) (Diff, error) {
	left := Diff{What: d.What, replicas: d.replicas}
	if Settle(&left, streamSettings, have, want); len(left.Keys) == 0 {
		d.State = Updated
		return d, nil
	}
	if left = left.Differs(recreateStream(want.Name)); left.State == Recreate {
		return left, nil
	}
	return left, errors.New("it differs (" + left.Detail +
		") and the server has not changed that although it replied that it did")
}

// wanted completes belfry's settings of a stream with the server's values for "no limit", and with those that belfry
// does not decide.
func wanted(want, have jetstream.StreamConfig, replicas int, conn *nats.Conn) jetstream.StreamConfig {
	want.MaxMsgsPerSubject, want.MaxMsgSize = -1, -1
	want.Replicas = have.Replicas
	if replicas > 0 {
		want.Replicas = replicas
	}
	want.AllowBatchPublish = want.AllowBatchPublish && max(have.Replicas, want.Replicas) <= 1 &&
		(have.AllowBatchPublish || supportsBatches(conn))
	if want.Name != StreamDead {
		want.DenyDelete = have.DenyDelete // belfry deletes only dead letters
	}
	return want
}

// recreateStream returns the commands that delete a stream when nothing in it is needed, and create it.
func recreateStream(name string) []string {
	first := "belfry listener list    # until LAG, UNACKED and RETRIES are 0: what a listener has not handled is " +
		"lost with the stream"
	if name == StreamDead {
		first = "belfry dlq list         # until it is empty: retry or drop each letter"
	}
	return []string{first, "nats stream rm " + name + " --force", "belfry bus setup"}
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
	case noJetStream(err):
		return fmt.Errorf("%s: %w (%w)", what, ErrNoJetStream, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the bus does not respond: %w", what, err)
	default:
		return fmt.Errorf("%s: %w", what, err)
	}
}

// ErrNoJetStream is the reason when nobody keeps streams.
var ErrNoJetStream = errors.New("the server, or the user's account, has no JetStream: enable it there; " +
	"belfry does not use that of another JetStream domain, such as a hub's through a leaf node, so connect it to a " +
	"server of that domain")

// noJetStream reports whether an error says so.
func noJetStream(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
}

// Unavailable is errs.Unavailable for something that the bus does not have. Its
// message includes a missing permission and that there is no JetStream, which disclose nothing of the server.
func Unavailable(err error, what string) error {
	switch {
	case errors.Is(err, ErrNoJetStream):
		return errs.New(errs.Unavailable, "%s: %v", what, ErrNoJetStream)
	case errors.Is(err, ErrPermissionDenied):
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
