package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"code.dny.dev/ssrf"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"belfry/pkg/listener"
)

const (
	maxPause = time.Hour // that a receiver may ask for
	maxReply = 64 << 10  // of a reply is read, so that its connection can be used again
)

// receiver posts events to a URL.
type receiver struct {
	url    string
	sign   signer
	client *http.Client
	giveUp time.Duration

	stopping context.Context // ends when the program is stopped

	mu    sync.Mutex
	until time.Time // the receiver requested a pause
}

// handle posts an event. A transient error retries it later.
func (r *receiver) handle(ctx context.Context, e *listener.Event) error {
	for wait := r.paused(); wait > 0; wait = r.paused() {
		select {
		case <-time.After(wait):
		case <-r.stopping.Done():
			return errors.New("the receiver requested a pause")
		}
	}
	err := r.post(ctx, e)
	if err == nil || listener.IsPermanent(err) {
		return err
	}
	if made, bad := time.Parse(time.RFC3339, e.Time); bad == nil && time.Since(made) > r.giveUp {
		return listener.Permanent(fmt.Errorf("after %s: %w", r.giveUp, err))
	}
	return err
}

// paused returns the rest of the pause that the receiver requested.
func (r *receiver) paused() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.until)
}

func (r *receiver) post(ctx context.Context, e *listener.Event) error {
	body := e.Append(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return withoutURL(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "belfry-webhook")
	if err := r.sign.header(req.Header, e.ID, time.Now(), body); err != nil {
		return err
	}
	res, err := r.client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	_, _ = io.CopyN(io.Discard, res.Body, maxReply)
	_ = res.Body.Close()
	return r.outcome(res)
}

// outcome returns nil, a transient or a permanent error for a reply.
func (r *receiver) outcome(res *http.Response) error {
	err := fmt.Errorf("the receiver replied %s", res.Status)
	switch code := res.StatusCode; {
	case code >= 200 && code <= 299:
		return nil
	case code >= 300 && code <= 399:
		return listener.Permanent(fmt.Errorf("%w: redirects are not followed, post to the final URL", err))
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code >= 500:
		r.pause(res.Header.Get("Retry-After"))
		return err
	default:
		return listener.Permanent(err)
	}
}

// pause records a pause: seconds or a date (RFC 9110, 10.2.3). It holds for all
// events, since they go to the same receiver.
func (r *receiver) pause(retryAfter string) {
	seconds, err := strconv.ParseUint(retryAfter, 10, 31)
	until := time.Now().Add(time.Duration(seconds) * time.Second)
	if err != nil {
		if until, err = http.ParseTime(retryAfter); err != nil {
			return
		}
	}
	if latest := time.Now().Add(maxPause); until.After(latest) {
		until = latest
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if until.After(r.until) {
		r.until = until
	}
}

// withoutURL removes the URL, which may contain a secret, from an error.
func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err
	}
	if errors.Is(err, ssrf.ErrProhibitedIP) {
		return listener.Permanent(fmt.Errorf("%w; -allow-private allows it", err))
	}
	return err
}

// signer signs with each of some secrets, so that a receiver can go from one to
// the next.
type signer []*webhooks.Webhook

// header adds the headers of the convention.
func (s signer) header(h http.Header, id string, at time.Time, body []byte) error {
	var all string
	for _, key := range s {
		signature, err := key.Sign(id, at, body)
		if err != nil {
			return err
		}
		all += " " + signature
	}
	h.Set(webhooks.HeaderWebhookID, id)
	h.Set(webhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(webhooks.HeaderWebhookSignature, all[1:])
	return nil
}
