package natsserver

import (
	"log"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"belfry/test/kit"
)

// Example connects to a server that runs until stop is called: examples have no test to end with.
func Example() (conn *nats.Conn, stop func()) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(kit.Limit) {
		log.Fatal("the server is not ready")
	}
	if conn, err = nats.Connect(s.ClientURL(), nats.Timeout(kit.Limit)); err != nil {
		log.Fatal(err)
	}
	return conn, func() { conn.Close(); s.Shutdown(); s.WaitForShutdown() }
}
