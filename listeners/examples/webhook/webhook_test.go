package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// posting is a receiver that is served by h.
func posting(t *testing.T, h http.HandlerFunc) *receiver {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	sign, err := newSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	return &receiver{url: server.URL + "/hook?token=hunter2", sign: sign, client: newClient(time.Hour, true),
		giveUp: time.Hour, stopping: t.Context()}
}

func happened(ago time.Duration) *listener.Event {
	return &listener.Event{Envelope: event.Envelope{ID: "msg_1", Event: event.StoreSaved, Store: "Books", UUID: "b",
		Time: time.Now().Add(-ago).UTC().Format(time.RFC3339Nano)}}
}

// The values are those of the convention's own example.
func TestSignatureFollowsTheConvention(t *testing.T) {
	sign, err := newSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	if err := sign.header(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0),
		[]byte(`{"test": 2432232314}`)); err != nil {
		t.Fatal(err)
	}
	if got := h.Get("webhook-signature"); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Error(got)
	}
	if id, at := h.Get("webhook-id"), h.Get("webhook-timestamp"); id != "msg_p5jXN8AQM9LWM0D4loKWxJek" ||
		at != "1614265330" {
		t.Error(id, at)
	}
}

func TestPostIsSignedWithEachSecret(t *testing.T) {
	second := make([]byte, 32)
	var got http.Header
	var body []byte
	r := posting(t, func(_ http.ResponseWriter, req *http.Request) {
		got = req.Header.Clone()
		body, _ = io.ReadAll(req.Body)
	})
	var err error
	if r.sign, err = newSigner(secret + " whsec_" + base64.StdEncoding.EncodeToString(second)); err != nil {
		t.Fatal(err)
	}
	if err := r.handle(t.Context(), happened(0)); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, second)
	mac.Write([]byte(got.Get("webhook-id") + "." + got.Get("webhook-timestamp") + "." + string(body)))
	signatures := strings.Fields(got.Get("webhook-signature"))
	if len(signatures) != 2 || signatures[1] != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		t.Errorf("signed %q", signatures)
	}
	if e, err := event.Decode(body); err != nil || e.ID != "msg_1" || got.Get("Content-Type") != "application/json" {
		t.Errorf("%s, %v", body, err)
	}
}

func TestStatusDecidesAboutRetries(t *testing.T) {
	const taken, later, never = "taken", "later", "never"
	for status, want := range map[int]string{
		200: taken, 204: taken, 301: never, 307: never, 400: never, 401: never, 404: never, 408: later, 410: never,
		425: later, 429: later, 500: later, 502: later, 503: later,
	} {
		followed := false
		r := posting(t, func(w http.ResponseWriter, req *http.Request) {
			followed = followed || req.URL.Path != "/hook"
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		})
		err := r.handle(t.Context(), happened(0))
		got := later
		switch {
		case err == nil:
			got = taken
		case listener.IsPermanent(err):
			got = never
		}
		if got != want || followed {
			t.Errorf("%d: %s, not %s; followed: %t", status, got, want, followed)
		}
	}
}

func TestRetryAfterPausesAllPosts(t *testing.T) {
	date := time.Now().Add(30 * time.Minute).UTC().Format(http.TimeFormat)
	for asked, want := range map[string][2]time.Duration{
		"":                {-1, 0},
		"soon":            {-1, 0},
		"-5":              {-1, 0},
		"1800":            {20 * time.Minute, 30 * time.Minute},
		date:              {20 * time.Minute, 30 * time.Minute},
		"999999999999999": {-1, 0},
		"99999999":        {50 * time.Minute, time.Hour},
	} {
		posts := 0
		r := posting(t, func(w http.ResponseWriter, _ *http.Request) {
			posts++
			w.Header().Set("Retry-After", asked)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		for range 2 {
			if err := r.handle(t.Context(), happened(0)); err == nil || listener.IsPermanent(err) {
				t.Errorf("%q: %v", asked, err)
			}
			stopped, stop := context.WithCancel(t.Context())
			stop()
			r.stopping = stopped // so that it does not wait
		}
		if got := r.paused(); want[0] < 0 && got > 0 || want[0] > 0 && (got < want[0] || got > want[1] || posts != 1) {
			t.Errorf("%q: a pause of %s, and %d posts", asked, got, posts)
		}
	}
}

func TestAnOldEventIsPostedOnceMore(t *testing.T) {
	posts := 0
	r := posting(t, func(w http.ResponseWriter, _ *http.Request) {
		posts++
		w.WriteHeader(http.StatusInternalServerError)
	})
	if err := r.handle(t.Context(), happened(2*time.Hour)); !listener.IsPermanent(err) || posts != 1 {
		t.Errorf("%v after %d posts", err, posts)
	}
}

func TestErrorsDoNotContainTheURL(t *testing.T) {
	r := posting(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	err := r.handle(t.Context(), happened(0))
	if err == nil || listener.IsPermanent(err) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("aborted: %v", err)
	}
	r.client = newClient(time.Hour, false)
	err = r.handle(t.Context(), happened(0))
	if !listener.IsPermanent(err) || strings.Contains(err.Error(), "hunter2") ||
		!strings.Contains(err.Error(), "-allow-private") {
		t.Errorf("refused: %v", err)
	}
}

func TestPrivateAddressesAreRejected(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": false, "127.1.2.3": false, "0.0.0.0": false, "10.1.2.3": false, "172.31.0.1": false,
		"192.168.1.1":     false,
		"169.254.169.254": false, "100.64.0.1": false, "100.100.100.200": false, "192.0.0.192": false,
		"168.63.129.16": false, "198.18.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "fe80::1": false, "fc00::1": false, "fd00:ec2::254": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": false, "64:ff9b::7f00:1": false, "2002:7f00:1::1": false,
		"2001::1": false, "8.8.8.8": true, "2606:4700::1111": true,
	} {
		at := netip.AddrPortFrom(netip.MustParseAddr(address), 8443)
		network := "tcp6"
		if at.Addr().Is4() {
			network = "tcp4"
		}
		if err := public().Safe(network, at.String(), nil); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestUnsafeURLsAreRejected(t *testing.T) {
	for text, want := range map[string]bool{
		"https://example.com/hook": true, "https://127.0.0.1:8443": true, "http://example.com": false, "": false,
		"example.com":        false,
		"file:///etc/passwd": false, "https://": false, "https://ada:hunter2@example.com": false,
		"https://hunter2 .com/%zz": false,
	} {
		_, err := checkURL(text, false)
		if (err == nil) != want || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := checkURL("http://example.com", true); err != nil {
		t.Error(err)
	}
}

func TestInvalidSecretsAreRejected(t *testing.T) {
	for text, want := range map[string]bool{
		secret: true, strings.TrimPrefix(secret, "whsec_"): true, "": false, " ": false, "whsec_c2hvcnQ=": false,
		"whsec_hunter2!": false, "whsec_" + strings.Repeat("AAAA", 22): false, secret + " hunter2": false,
	} {
		_, err := newSigner(text)
		if (err == nil) != want || err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
