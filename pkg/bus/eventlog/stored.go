package eventlog

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// Message is a message as a stream stores it.
type Message struct {
	Sequence uint64
	Subject  string
	Header   nats.Header // without the headers that the server adds to a reply
	Data     []byte
}

// Stored is a part of a stream: the messages from a sequence on that it has when Each begins. They are
// read by direct gets, without a consumer: only an admin may create one, and a work queue permits no second one.
type Stored struct {
	Stream string
	First  uint64
}

const (
	storedEvents = 500
	storedBytes  = 4 << 20
	pageTimeout  = 30 * time.Second
	lagPatience  = 30 * time.Second
)

// headersOfReplies are those that the server adds.
var headersOfReplies = []string{"Nats-Stream", "Nats-Sequence", "Nats-Time-Stamp", "Nats-Subject", "Nats-Num-Pending",
	"Nats-Last-Sequence", "Nats-UpTo-Sequence"}

// Each calls a function with each of the messages, in their order, until it fails or ctx ends. Any replica may reply to
// a direct get, also one that lacks the newest messages: Each waits for them.
func (s Stored) Each(ctx context.Context, r bus.Requester, each func(*Message) error) error {
	ctx, done := r.UntilDenied(ctx, directGets+s.Stream)
	defer done()
	of, err := stream(ctx, r.JetStream(), s.Stream)
	if err != nil {
		return err
	}
	state := of.CachedInfo().State
	if state.Msgs == 0 {
		return nil
	}
	at, last := max(s.First, state.FirstSeq), state.LastSeq
	began, delays := time.Now(), backoff.New(10*time.Millisecond, time.Second)
	for at <= last {
		next, err := s.page(ctx, r.JetStream().Conn(), at, last, each)
		if err != nil {
			return err
		}
		if next > at {
			at, began = next, time.Now()
			delays.Reset()
			continue
		}
		more, err := hasFrom(ctx, of, at, last)
		if err != nil || !more {
			return err
		}
		if time.Since(began) > lagPatience {
			return errs.New(errs.Unavailable, "a replica of the stream %s of the bus lacks message %d and those "+
				"after it: check the cluster with `nats stream info %s`", s.Stream, at, s.Stream)
		}
		if err := delays.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// page calls a function with the messages of a page up to last, and returns the sequence after them.
func (s Stored) page(ctx context.Context, conn *nats.Conn, at, last uint64, each func(*Message) error) (uint64, error) {
	waiting, release := whileConnected(ctx, conn)
	defer release()
	waiting, cancel := context.WithTimeout(waiting, pageTimeout)
	defer cancel()
	var page []*Message
	_, err := directPage(waiting, conn, s.Stream, at, Limit{Events: storedEvents, Bytes: storedBytes},
		func(m *nats.Msg) error {
			entry, err := direct(m)
			if err != nil {
				return err
			}
			for _, name := range headersOfReplies {
				delete(m.Header, name)
			}
			page = append(page,
				&Message{Sequence: entry.Sequence, Subject: entry.Subject, Header: m.Header, Data: m.Data})
			return nil
		})
	if err != nil {
		return at, err
	}
	for _, m := range page {
		if m.Sequence > last {
			return last + 1, nil
		}
		if err := each(m); err != nil {
			return at, err
		}
		at = m.Sequence + 1
	}
	return at, nil
}

// hasFrom reports whether a stream has a message with a sequence from at to last, by its leader.
func hasFrom(ctx context.Context, s jetstream.Stream, at, last uint64) (bool, error) {
	info, err := s.Info(ctx, jetstream.WithDeletedDetails(true))
	if err != nil {
		return false, unavailable(err)
	}
	deleted := info.State.Deleted // in their order
	i, _ := slices.BinarySearch(deleted, max(at, info.State.FirstSeq))
	for at = max(at, info.State.FirstSeq); at <= min(last, info.State.LastSeq); at++ {
		if i >= len(deleted) || deleted[i] != at {
			return info.State.Msgs > 0, nil
		}
		i++
	}
	return false, nil
}
