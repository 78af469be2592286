// Package client has the clients of a chaos run: they write and read objects, files and users of a
// belfry over HTTP and over the bus, and record every request with its reply.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"belfry/test/chaos/history"
)

// timeout is how long a reply is awaited, which a fault may have lost. After it the outcome is unknown, which checks
// take into account: on a slow machine more outcomes are.
const timeout = 2 * time.Minute

// reply is what a request returned.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// transport sends HTTP requests. One is shared by all clients of a run.
type transport struct{ client *http.Client }

func newTransport() *transport {
	return &transport{&http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			MaxIdleConnsPerHost: 64, DisableCompression: true, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// send returns the reply, or an error when there was none: then the outcome is unknown.
func (t *transport) send(ctx context.Context, method, url string, header http.Header, body []byte) (*reply, error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := t.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return &reply{status: res.StatusCode, header: res.Header, body: text}, nil
}

// sender is send or insist.
type sender func(ctx context.Context, method, url string, header http.Header, body []byte) (*reply, error)

// insist sends a request that may be repeated until there is a reply other than 503. Checks send it: what
// is there does not depend on whether belfry runs at the moment.
func (t *transport) insist(ctx context.Context, method, url string, header http.Header, body []byte) (*reply, error) {
	for {
		r, err := t.send(ctx, method, url, header, body)
		if ctx.Err() != nil || err == nil && r.status != http.StatusServiceUnavailable {
			return r, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// problemOf returns the type of a problem, or the start of another body.
func problemOf(body []byte) string {
	var p struct{ Type, Detail string }
	if json.Unmarshal(body, &p) == nil && p.Type != "" {
		return strings.TrimPrefix(p.Type, "urn:belfry:problem:") + ": " + p.Detail
	}
	return string(body[:min(len(body), 200)])
}

// revisionOf returns the revision that a reply says, 0 for none.
func revisionOf(h http.Header) uint64 {
	r, err := strconv.ParseUint(strings.Trim(h.Get("ETag"), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return r
}

func quoted(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// conclude records in an op what the reply to it says. It returns what is wrong with the reply itself.
func conclude(op *history.Op, r *reply, err error) (wrong string) {
	if err != nil {
		op.Outcome, op.Problem = history.Unknown, err.Error()
		return ""
	}
	op.Status = r.status
	switch {
	case r.status/100 == 2, r.status == http.StatusNotModified:
		op.Outcome = history.Done
	case r.status >= 500:
		op.Outcome, op.Problem = history.Unknown, problemOf(r.body)
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			return fmt.Sprintf("status %d with Retry-After %q", r.status, r.header.Get("Retry-After"))
		}
	default:
		op.Outcome, op.Problem = history.Refused, problemOf(r.body)
		if !expected(op) {
			return fmt.Sprintf("status %d", r.status)
		}
		if isTaken(op) {
			return noOther
		}
	}
	return ""
}

// noOther is what is wrong with the refusal of a write because another object has its title: each write sets another
// one.
const noOther = "no other object has its title"

// isTaken reports whether a write was refused because of a unique value.
func isTaken(op *history.Op) bool { return strings.HasPrefix(op.Problem, "taken") }

// unnamed ends the problem of a write that names no object, where it has to.
const unnamed = "the object has a reference that names no object"

// expected reports whether a status is one that the requests of the clients can be refused with.
func expected(op *history.Op) bool {
	kind := op.Kind
	switch op.Status {
	case http.StatusBadRequest: // its target does not exist
		store := history.StoreOf(op.Object.Store)
		return (store.Required || store.Restrict) && strings.HasSuffix(op.Problem, unnamed)
	case http.StatusNotFound:
		return kind != history.Create
	case http.StatusConflict:
		return kind.Writes()
	case http.StatusPreconditionFailed:
		return kind.Writes()
	}
	return false
}

// request sends an op to a front, by send or insist.
func request(ctx context.Context, send sender, front string, op *history.Op) (*reply, error) {
	store := history.StoreOf(op.Object.Store)
	h := http.Header{"X-Request-Id": {op.Request}}
	path := store.Path + "/" + op.Object.UUID
	var method string
	var body []byte
	switch op.Kind {
	case history.Create:
		method, path, body = http.MethodPost, store.Path, encode(op.Object.UUID, op.Fields)
	case history.Put:
		method, body = http.MethodPut, encode("", op.Fields)
	case history.Patch:
		method, body = http.MethodPatch, encode("", op.Fields)
		h.Set("Content-Type", "application/merge-patch+json")
	case history.Delete:
		method = http.MethodDelete
	case history.Get:
		method = http.MethodGet
	default:
		return nil, fmt.Errorf("no request for %s", op.Kind)
	}
	if body != nil && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	if op.IfMatch != 0 {
		h.Set("If-Match", quoted(op.IfMatch))
	}
	if op.IfAbsent {
		h.Set("If-None-Match", "*")
	}
	if op.IfNoneMatch != 0 {
		h.Set("If-None-Match", quoted(op.IfNoneMatch))
	}
	return send(ctx, method, front+path, h, body)
}

// encode writes an object that has these fields.
func encode(uuid string, fields history.Fields) []byte {
	all := map[string]json.RawMessage{}
	for name, value := range fields {
		all[name] = json.RawMessage(value)
	}
	if uuid != "" {
		all["uuid"] = json.RawMessage(strconv.Quote(uuid))
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // the fields are JSON
	}
	return data
}
