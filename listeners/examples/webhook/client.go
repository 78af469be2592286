package main

import (
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"code.dny.dev/ssrf"
	webhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	dialTimeout = 10 * time.Second
	keepIdle    = 90 * time.Second
	maxHeader   = 64 << 10
)

// platform is the metadata address of a cloud that is not in a private network.
var platform = netip.MustParsePrefix("168.63.129.16/32")

// newClient returns a client that follows no redirect and, unless allowPrivate,
// connects to no address of this machine or of a private network. The address is
// checked when it is dialed, so that DNS rebinding does not help. A proxy would
// dial in its place, so none is used.
func newClient(timeout time.Duration, allowPrivate bool) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	if !allowPrivate {
		dialer.Control = public().Safe
	}
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    concurrency,
			IdleConnTimeout:        keepIdle,
			TLSHandshakeTimeout:    dialTimeout,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}

// public allows public addresses only.
func public() *ssrf.Guardian {
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(platform))
}

// newSigner reads the secrets: one or more, separated by spaces.
func newSigner(secrets string) (signer, error) {
	const least, most = 24, 64 // bytes, says the convention
	var s signer
	for secret := range strings.FieldsSeq(secrets) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(key) < least || len(key) > most {
			return nil, errors.New(envSecret +
				" holds something else than secrets of 24 to 64 bytes: whsec_ and base64")
		}
		signs, err := webhooks.NewWebhookRaw(key)
		if err != nil {
			return nil, err
		}
		s = append(s, signs)
	}
	if len(s) == 0 {
		return nil, errors.New(envSecret + ` is not set. Make one with: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return s, nil
}
