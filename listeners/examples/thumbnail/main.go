// Command thumbnail makes a small picture of each picture that is uploaded, and
// attaches it to the same object.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// envToken is the token of the program's session; without it, requests are
// anonymous.
const envToken = "BELFRY_TOKEN" //nolint:gosec // a name, no secret

// types are those that shrink reads.
var types = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

const (
	attempts = 20 // about five minutes
	patience = 2 * time.Minute
	ackWait  = 5 * time.Second // after which the events in flight of a killed process are redelivered
)

func main() {
	name := flag.String("name", "thumbnail", "name of the listener")
	m := &maker{client: newClient(), token: os.Getenv(envToken)}
	flag.StringVar(&m.belfry, "belfry", "http://127.0.0.1:8080", "where belfry serves HTTP")
	flag.StringVar(&m.service, "service", "/binary", "path of the binary service")
	flag.StringVar(&m.store, "store", "Photos", "store of the objects")
	flag.StringVar(&m.objects, "objects", "/photos", "path of that store")
	flag.StringVar(&m.from, "from", "pictures", "property that pictures are uploaded to")
	flag.StringVar(&m.to, "to", "thumbnails", "property that thumbnails are attached to")
	flag.Int64Var(&m.maxBytes, "max-bytes", 32<<20, "size of the largest file that is read")
	flag.IntVar(&m.limits.side, "size", 256, "the longer side of a thumbnail, in pixels")
	flag.IntVar(&m.limits.pixels, "max-pixels", 25_000_000, "size of the largest picture that is decoded")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q: there are flags alone\n", flag.Arg(0))
		os.Exit(2)
	}
	m.belfry = strings.TrimSuffix(m.belfry, "/")
	if u, err := url.Parse(m.belfry); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		fmt.Fprintln(os.Stderr, "-belfry is where belfry serves, such as http://127.0.0.1:8080")
		os.Exit(2)
	}
	if m.from == m.to {
		fmt.Fprintln(os.Stderr, "-from and -to are the same: each thumbnail would get a thumbnail")
		os.Exit(2)
	}
	if m.limits.side < 1 || m.limits.pixels < 1 {
		fmt.Fprintln(os.Stderr, "-size and -max-pixels are at least 1")
		os.Exit(2)
	}
	listener.Main(listener.Spec{
		Name:        *name,
		Events:      []event.Name{event.BinaryUploaded},
		Stores:      []string{m.store},
		Handler:     m.handle,
		Timeout:     patience,
		AckWait:     ackWait,
		MaxAttempts: attempts, // so that a picture which crashes the process becomes a dead letter
	})
}

// maker makes thumbnails.
type maker struct {
	belfry, service, objects string
	store, from, to          string
	client                   *http.Client
	token                    string
	maxBytes                 int64
	limits                   limits
}

// record is the record of a file in an object.
type record struct {
	Hash     string            `json:"hash"`
	Size     int64             `json:"size"`
	Mimetype string            `json:"mimetype"`
	Metadata map[string]string `json:"metadata"`
}

// handle makes the thumbnail of the picture of an event, unless the object has it.
// The upload is conditional on the revision that was read, so that concurrent
// processes never attach a thumbnail twice.
func (m *maker) handle(ctx context.Context, e *listener.Event) error {
	var uploaded record
	if err := json.Unmarshal(e.Record, &uploaded); err != nil {
		return listener.Permanent(fmt.Errorf("the event's record can't be read: %w", err))
	}
	if e.Property != m.from || !slices.Contains(types, uploaded.Mimetype) {
		return nil // a thumbnail itself, or no picture
	}
	if uploaded.Size > m.maxBytes {
		return listener.Permanent(fmt.Errorf("the picture has %d bytes, over %d", uploaded.Size, m.maxBytes))
	}
	at, err := m.find(ctx, e.UUID, uploaded.Hash)
	if err != nil || at.index < 0 || at.done {
		return err
	}
	data, err := m.download(ctx, e.UUID, at.index, uploaded.Hash)
	if err != nil {
		return err
	}
	small, err := shrink(data, m.limits)
	if err != nil {
		return listener.Permanent(err)
	}
	return m.attach(ctx, e.UUID, at.revision, uploaded.Hash, small)
}

// place is where a picture is in its object.
type place struct {
	revision string // of the object, as an ETag
	index    int    // -1: it was deleted
	done     bool   // it has its thumbnail
}

// find finds a picture in its object. The index in the event may be out of date.
func (m *maker) find(ctx context.Context, uuid, hash string) (place, error) {
	none := place{index: -1}
	header, body, err := m.do(ctx, http.MethodGet, m.objects+"/"+uuid, nil, nil)
	var status statusError
	if errors.As(err, &status) && status.code == http.StatusNotFound {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return none, err
	}
	var pictures, thumbnails []record
	if err := errors.Join(records(fields[m.from], &pictures), records(fields[m.to], &thumbnails)); err != nil {
		return none, listener.Permanent(err)
	}
	return place{
		revision: header.Get("ETag"),
		index:    slices.IndexFunc(pictures, func(r record) bool { return r.Hash == hash }),
		done:     slices.ContainsFunc(thumbnails, func(r record) bool { return r.Metadata["of"] == hash }),
	}, nil
}

func records(field json.RawMessage, into *[]record) error {
	if field == nil {
		return nil
	}
	return json.Unmarshal(field, into)
}
