package backing

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"belfry/test/kit/programs"
)

// Mongo starts a server that speaks MongoDB's protocol, empty, and returns
// its mongodb:// URL. It requires no user.
func Mongo(t testing.TB) string { return StartMongo(t).URL }

// MongoServer is such a server that a test can kill and restart.
type MongoServer struct {
	URL     string // the same after a Restart
	Address string // host and port of it

	program string
	args    []string
	process *process
}

// StartMongo is Mongo for a test that kills the server.
func StartMongo(t testing.TB) *MongoServer {
	t.Helper()
	return startMongo(t, "-folder", t.TempDir())
}

// MongoOnPostgres starts such a server on a PostgreSQL. It replies with the errors of PostgreSQL, as DocumentDB does,
// which is built on it too.
func MongoOnPostgres(t testing.TB, p *Postgres) *MongoServer {
	t.Helper()
	// FerretDB uses a connection for each update of a command until the command ends, and hangs when it has too few.
	return startMongo(t, "-postgres", p.URL+"?pool_max_conns=180")
}

func startMongo(t testing.TB, args ...string) *MongoServer {
	t.Helper()
	address := freeAddress(t)
	s := &MongoServer{
		URL:     "mongodb://" + address + "/",
		Address: address,
		program: must(t)(programs.Module("mongo")),
		args:    append(args, "-listen", address),
	}
	s.Restart(t)
	return s
}

// Kill ends the server as a crash would.
func (s *MongoServer) Kill() { s.process.kill() }

// Restart starts the killed server again, on the same data and address, and
// waits until it answers.
func (s *MongoServer) Restart(t testing.TB) {
	t.Helper()
	s.process = start(t, exec.Command(s.program, s.args...), s.answers)
}

// answers reports whether the server replies. It dials the port first, since a
// driver waits for long before it retries a port that is not open yet.
func (s *MongoServer) answers(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	client, err := mongo.Connect(options.Client().ApplyURI(s.URL))
	if err != nil {
		return err
	}
	return errors.Join(client.Ping(ctx, nil), client.Disconnect(context.WithoutCancel(ctx)))
}
