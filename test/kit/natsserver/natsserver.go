// Package natsserver runs NATS servers within a test: on loopback, quiet, until
// the test ends.
package natsserver

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/test/kit"
)

// Serve starts a server on the options' port, 0 being none yet, and waits until it takes
// connections.
func Serve(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.Host, o.NoSigs, o.NoLog = "127.0.0.1", true, true
	o.AuthTimeout, o.TLSTimeout = kit.Limit.Seconds(), kit.Limit.Seconds() // a client may stall while it logs in
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(kit.Limit) {
		t.Fatal("the server is not ready")
	}
	return s
}

// ServeFile starts a server by a file, on a free port instead of the file's.
func ServeFile(t testing.TB, file string) *server.Server {
	t.Helper()
	o := Options(t, file)
	o.Port = server.RANDOM_PORT
	return Serve(t, o)
}

// Options are what a file says.
func Options(t testing.TB, file string) *server.Options {
	t.Helper()
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// JetStream connects to a server as a stranger to belfry does, until the test ends.
func JetStream(t testing.TB, url string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url, append([]nats.Option{nats.Timeout(kit.Limit)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	return js
}
