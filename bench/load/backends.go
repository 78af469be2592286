package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/test/backing"
)

// The load of the backends. Their servers are slower than belfry, so rounds are
// shorter.
const (
	backendRounds   = 5
	backendRequests = 1000
	backendConns    = 16

	// A scrape of the metrics counts records on the server, which costs more than a write.
	metricsPause = 100 * time.Millisecond
)

// database is a backend with its server and the limit that belfry is compared with.
type database struct {
	name, url string
	backend   string // as a configuration has it, with %s for the URL
	apart     string // the same, with objects of its own
	requests  int    // of a round, at most
	count     func(url string) (*counter, error)
}

const (
	onDynamo         = "{type: dynamodb, region: eu-central-1, endpoint: '%s'}"
	cascadesOnDynamo = "{type: dynamodb, region: eu-central-1, endpoint: '%s', tablePrefix: cascades_}"
)

// backends measures each backend compared with the bare calls of its driver
// against the same server, and counts belfry's calls.
func (b *bench) backends(ctx context.Context, requests int) (err error) {
	if err := setCredentials(); err != nil {
		return err
	}
	bare, err := build(ctx, ".", b.folder, "bare", "./load/bare")
	if err != nil {
		return err
	}
	requests = min(requests, backendRequests)
	if err := b.compare(ctx, "file", "{type: file}", requests, 0, b.serveLimit); err != nil {
		return err
	}
	if err := cascades(ctx, b, "file", "{type: file}", cascaded, 0); err != nil {
		return err
	}
	return backing.WithHost(ctx, func(h *backing.Host) error {
		for _, d := range []database{
			mongoDatabase(h),
			{"dynamodb", backing.Dynoxide(h).URL, onDynamo, cascadesOnDynamo, backendRequests, countDynamo},
		} {
			err := b.compare(ctx, d.name, fmt.Sprintf(d.backend, d.url), min(requests, d.requests), metricsPause,
				func(ctx context.Context) (*server, error) {
					return start(ctx, "limit", bare, d.name, d.url)
				})
			if err == nil {
				err = b.roundTrips(ctx, d)
			}
			if err == nil {
				err = cascades(ctx, b, d.name, fmt.Sprintf(d.apart, d.url), min(cascaded, d.requests), metricsPause)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		return cascades(ctx, b, "dynamodb (dynalite)", fmt.Sprintf(cascadesOnDynamo, backing.Dynalite(h).URL),
			cascaded, metricsPause)
	})
}

// setCredentials sets those of DynamoDB's stand-in, which takes any.
func setCredentials() error {
	return errors.Join(os.Setenv("AWS_ACCESS_KEY_ID", "belfry-load"), os.Setenv("AWS_SECRET_ACCESS_KEY", "belfry-load"))
}

// mongoDatabase returns an existing server, or starts one. The latter is
// FerretDB, whose figures say little about MongoDB: it is used with one
// connection, and scans the collection where MongoDB uses an index.
func mongoDatabase(h *backing.Host) database {
	d := database{"mongodb", os.Getenv("BELFRY_TEST_MONGODB_URL"), "{type: mongodb, url: '%s', database: belfry-load}",
		"{type: mongodb, url: '%s', database: belfry-load-cascades}", backendRequests, countMongo}
	if d.url == "" {
		fmt.Println("mongodb: this is FerretDB; BELFRY_TEST_MONGODB_URL names a MongoDB, whose databases belfry-load " +
			"and bare are written to")
		d.url, d.requests = backing.Mongo(h)+"?maxPoolSize=1&timeoutMS=120000", 200
	}
	return d
}

// on is the configuration with another backend.
func on(backend string) string { return configuration + "backends: {default: " + backend + "}\n" }

// withBus is a configuration whose bus others can reach at an address.
func withBus(configuration, address string) string {
	return strings.Replace(configuration, `bus: {listen: ""}`, "bus: {listen: "+address+"}", 1)
}

// compare measures creates and gets of belfry on a backend and of its limit in
// turn. A turn begins when the work of the previous one is done: what belfry does
// after its replies uses the server too, and is reported separately.
func (b *bench) compare(ctx context.Context, name, backend string, requests int, pause time.Duration,
	limit func(context.Context) (*server, error)) (err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	belfry := func(ctx context.Context) (*server, error) { return b.serveWith(ctx, withBus(on(backend), address)) }
	var servers [2]*server // limit, belfry
	for i, serve := range []func(context.Context) (*server, error){limit, belfry} {
		s, err := serve(ctx)
		if err != nil {
			return err
		}
		servers[i], s.pause = s, pause
		defer func() { err = errors.Join(err, s.stop()) }()
		if _, err := closedLoop(s.base, backendConns, requests, create("/items", "warm")); err != nil {
			return err
		}
		if err := published(s, 0); err != nil {
			return err
		}
	}
	log, err := openLog(ctx, address)
	if err != nil {
		return err
	}
	defer log.Close()
	creates := &comparison{name: name + ": create, its event published", goal: 0.70}
	gets := &comparison{name: name + ": get", goal: 0.90}
	var left []time.Duration // after the last create, until its event was removed from its record
	if err := b.profiled(ctx, servers[1], "backends-"+name, profileSeconds, func() error {
		for round := range backendRounds {
			run := fmt.Sprintf("r%d", round)
			if err := creates.measure(servers, func(s *server) (result, error) {
				began := time.Now()
				r, err := closedLoop(s.base, backendConns, requests, create("/items", run))
				if err == nil && s.name == "belfry" {
					err = log.holds(ctx, (round+2)*requests)
				}
				r.took = time.Since(began)
				if err == nil && s.name == "belfry" {
					err = published(s, 0)
					left = append(left, time.Since(began)-r.took)
				}
				return r, err
			}); err != nil {
				return err
			}
			if err := gets.measure(servers, func(s *server) (result, error) {
				return closedLoop(s.base, backendConns, requests, get(run, requests))
			}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	creates.print()
	slices.Sort(left)
	fmt.Printf("  the last event was removed from its record %s after it was published (median of the rounds, "+
		"%s to %s)\n",
		short(percentile(left, 0.5)), short(left[0]), short(left[len(left)-1]))
	gets.print()
	return nil
}

func freeAddress(ctx context.Context) (string, error) {
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return free.Addr().String(), free.Close()
}

// eventLog reads belfry's log without requests to the backend, which metrics
// cause.
type eventLog struct {
	*nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

func openLog(ctx context.Context, address string) (*eventLog, error) {
	conn, err := nats.Connect("nats://" + address)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, bus.StreamEvents)
	return &eventLog{conn, js, stream}, err
}

// holds waits until the log has this many events, for two minutes at most.
func (l *eventLog) holds(ctx context.Context, events int) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		info, err := l.stream.Info(ctx)
		if err != nil || info.State.LastSeq >= uint64(events) { //nolint:gosec // positive
			return err
		}
	}
	return fmt.Errorf("the log does not hold %d events after two minutes", events)
}

const counted = 40 // requests of each kind, sequential unless stated otherwise

// roundTrips counts the requests that belfry sends to the server per request,
// including the work it causes: workers, and the removal of events from records.
func (b *bench) roundTrips(ctx context.Context, d database) (err error) {
	c, err := d.count(d.url)
	if err != nil {
		return err
	}
	defer c.close()
	s, err := b.serveWith(ctx, on(fmt.Sprintf(d.backend, c.url)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	child := func(fields string) func(i int) []byte {
		return func(i int) []byte { return object(fmt.Sprintf("c-%08d", i), fields) }
	}
	for _, k := range []struct {
		name, method, path string
		status, atOnce     int
		body               func(i int) []byte
	}{
		{"parents", "POST", "/parents", 201, 1, func(i int) []byte { return object(fmt.Sprintf("p-%08d", i), "") }},
		{"create", "POST", "/loose", 201, 1, child("")},
		{"create, 16 at once", "POST", "/loose", 201, 16,
			func(i int) []byte { return object(fmt.Sprintf("m-%08d", i), "") }},
		{"update", "PUT", "/loose/c-%08d", 200, 1, child(`"n":1,`)},
		{"create with an entry in an array", "POST", "/children", 201, 1, child(`"parent":"p-00000000",`)},
		{"update with an entry in an array", "PUT", "/children/c-%08d", 200, 1,
			child(`"parent":"p-00000000","extra":1,`)},
		{"update that an array copies", "PUT", "/children/c-%08d", 200, 1, func(i int) []byte {
			return []byte(strings.Replace(string(child(`"parent":"p-00000000",`)(i)), "1887", "1888", 1))
		}},
		{"deletion of an object with an entry in an array", "DELETE", "/children/c-%08d", 204, 1,
			func(int) []byte { return nil }},
	} {
		requests := counted * k.atOnce
		if err := c.quiet(); err != nil {
			return err
		}
		c.reset()
		_, err := closedLoop(s.base, k.atOnce, requests, func(c *client, i int) error {
			path := k.path
			if strings.Contains(path, "%") {
				path = fmt.Sprintf(path, i)
			}
			return expect(c, k.status, k.method, path, k.body(i))
		})
		if err == nil {
			err = c.quiet()
		}
		if err != nil {
			return err
		}
		if k.name != "parents" {
			fmt.Printf("%s: requests to the server per %s, including the work it causes: %s\n", d.name, k.name,
				c.per(requests))
		}
	}
	return c.cascadeTrips(s, d.name)
}
