package app

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/config"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/kit/tlskit"
)

// The next connection to an external bus can use another secret, but be of no other user. The embedded server has its
// own.
func TestAReloadChangesTheSecretOfAnExternalBusAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.write("nats.conf", "authorization {user: u, password: secret}\n")
	for text, keys := range map[[3]string]string{
		{"url: 'nats://127.0.0.1:1', user: u, password: secret-1", "secret-1", "secret-2"}:       "",
		{"url: 'nats://127.0.0.1:1', token: secret-1", "secret-1", "secret-2"}:                   "",
		{"url: 'nats://127.0.0.1:1', user: u, password: secret-1", "user: u", "user: v"}:         "bus.user",
		{"url: 'nats://127.0.0.1:1', user: u, password: s", "user: u, password: s", "token: t"}:  "bus.user bus.token",
		{"config: nats.conf, user: u, password: secret-1", "secret-1", "secret-2"}:               "bus.password",
		{"config: nats.conf, token: secret-1", "secret-1", "secret-2"}:                           "bus.token",
		{"url: 'nats://127.0.0.1:1', user: u, password: secret-1", "127.0.0.1:1", "127.0.0.1:2"}: "bus.url",
	} {
		before := "bus: {" + text[0] + "}\n"
		var got []string
		for _, problem := range config.Refusals(p.load(before), p.load(strings.Replace(before, text[1], text[2], 1))) {
			got = append(got, problem.Key)
		}
		if strings.Join(got, " ") != keys {
			t.Errorf("%q: %q can't change, want %q", text, got, keys)
		}
	}
}

// Another file of authorities is refused by its own name where something that is opened at the start trusts it, and by
// no other.
func TestAReloadNamesTheKeyOfAuthorities(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	tlskit.WriteValid(t, p.path("a.pem"), p.path("key.pem"), "localhost")
	tlskit.WriteValid(t, p.path("b.pem"), p.path("key.pem"), "localhost")
	for text, keys := range map[string]string{
		"mailers: {m: {type: smtp, host: localhost}}\n":                                                 "",
		"backends: {default: {type: mongodb, url: 'mongodb://localhost'}}\n":                            "ca",
		"backends: {default: {type: dynamodb, endpoint: 'http://localhost:1'}}\n":                       "ca",
		"binaries: {b: {type: S3Storage, bucket: x, endpoint: 'http://localhost:1'}}\n":                 "ca",
		"backup: {s3: {bucket: x, endpoint: 'http://localhost:1'}}\n":                                   "ca",
		"tracing: {endpoint: 'http://localhost:1'}\n":                                                   "ca",
		"bus: {url: 'tls://localhost:1'}\n":                                                             "ca",
		"bus: {url: 'tls://localhost:1', tls: {ca: a.pem}}\n":                                           "",
		"baseURL: https://app.example.com\nhttp: {acme: {}}\n":                                          "ca",
		"backends: {default: {type: mongodb, url: 'mongodb://localhost'}}\nbackup: {s3: {bucket: x}}\n": "ca",
	} {
		for _, change := range [][2]string{{"ca: a.pem\n", "ca: b.pem\n"}, {"", "ca: b.pem\n"}, {"ca: a.pem\n", ""}} {
			var got []string
			for _, problem := range config.Refusals(p.load(change[0]+text), p.load(change[1]+text)) {
				got = append(got, problem.Key)
			}
			if strings.Join(got, " ") != keys {
				t.Errorf("%q from %q to %q: %q can't change, want %q", text, change[0], change[1], got, keys)
			}
		}
	}
}

// A password that is changed on the server of the bus takes no restart of belfry.
func TestAReloadReadsThePasswordOfTheBusAgain(t *testing.T) {
	folder := t.TempDir()
	options := func(password string) *server.Options {
		return &server.Options{JetStream: true, StoreDir: folder, Username: "belfry", Password: password}
	}
	s := natsserver.Serve(t, options("first-secret"))
	text := strings.Replace(books, `bus: {listen: ""}`,
		fmt.Sprintf("bus: {url: %q, user: belfry, password: first-secret}", s.ClientURL()), 1)
	p := newPlace(t, text)
	a, _ := p.reloadable()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	next := options("second-secret")
	next.Port = s.Addr().(*net.TCPAddr).Port
	s.Shutdown()
	s.WaitForShutdown()
	natsserver.Serve(t, next)
	kit.WaitUntil(t, func() error { return degraded(a, "the bus is unavailable: the server rejects the user") })
	if keys := p.reload(a, strings.Replace(text, "first-secret", "second-secret", 1)); !slices.Equal(keys,
		[]string{"bus.password"}) {
		t.Errorf("changed are %q", keys)
	}
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	if log := p.logged.String(); strings.Contains(log, "second-secret") || strings.Contains(log, "first-secret") {
		t.Error("the log has a password")
	}
}
