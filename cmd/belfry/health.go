package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/errs"
)

type healthCmd struct {
	configuration
	Listen  string        `help:"Address of HTTP, instead of the configured one." env:"BELFRY_LISTEN" placeholder:"HOST:PORT"`
	URL     string        `name:"url" help:"URL of belfry, instead of its address on this machine; https needs no valid certificate." placeholder:"URL"`
	Path    string        `help:"What to ask: ${enum} (${default})." enum:"/readyz,/livez" default:"/readyz" placeholder:"PATH"`
	Timeout time.Duration `help:"How long to wait for the reply (${default})." default:"5s" placeholder:"DURATION"`
}

// maxHealth is the most of a reply that is shown.
const maxHealth = 4 << 10

// Run asks the belfry on this machine whether it is ready. It is the health check of a container, which has no other
// program.
func (c *healthCmd) Run(ctx context.Context, s streams) error {
	base := strings.TrimRight(c.URL, "/")
	if c.Timeout <= 0 {
		return errs.New(errs.Invalid, "--timeout: expected a duration such as 5s")
	}
	if base == "" {
		loaded, err := c.load(c.Listen)
		if err != nil {
			return err
		}
		if base, err = ownURL(loaded); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+c.Path, nil)
	if err != nil || r.URL.Host == "" || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return errs.New(errs.Invalid, "--url: expected a URL such as http://127.0.0.1:8080")
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // no secret is sent, and the certificate is for another name than loopback
	}}
	status, body, err := ask(&client, r)
	if err == nil && status == http.StatusBadRequest && strings.Contains(string(body), "HTTPS server") {
		r.URL.Scheme = "https" // what a server of TLS says to plain HTTP
		status, body, err = ask(&client, r)
	}
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "belfry does not respond at %s: check that it runs there", base)
	}
	if status != http.StatusOK {
		return errs.New(errs.Unavailable, "not ready: %d %s", status, detail(body))
	}
	_, err = fmt.Fprintln(s.out, strings.TrimSpace(string(body)))
	return err
}

// ask returns the status and the body of a reply.
func ask(client *http.Client, r *http.Request) (status int, body []byte, err error) {
	resp, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	return resp.StatusCode, body, err
}

// ownURL is the URL of a belfry with this configuration for programs on its machine.
func ownURL(c *config.Config) (string, error) {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil || port == "0" {
		return "", errs.New(errs.Invalid, "the port of %s is not known; name the URL by --url", c.Listen)
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.Is6() {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// detail is what a problem says, or else the reply as it is.
func detail(body []byte) string {
	var problem struct{ Detail string }
	if err := json.Unmarshal(body, &problem); err == nil && problem.Detail != "" {
		return problem.Detail
	}
	return strings.TrimSpace(string(body))
}
