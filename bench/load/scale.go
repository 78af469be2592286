package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"belfry/listeners/mapping"
	"belfry/test/backing"
	"belfry/test/kit"
)

// The load of the part scale.
const (
	scaleChildren = 10 // of a parent
	scaleConns    = 32
	scaleIdle     = 10 * time.Second

	scaleGoal    = 1.7 // rate of two workers on two processors beside one on one
	constantWork = 1.1 // messages and requests of an operation at several fronts beside one
)

// scaleLag is the load at which the lag is measured. More samples, or shorter intervals, would be a load of gets that a
// slow database notices.
var scaleLag = offered{run: "l", rate: 100, took: 5 * time.Second, parents: 100, sample: 4, poll: 3 * time.Millisecond}

// several are the numbers of processes that are compared.
var several = []int{1, 2, 4}

// scale measures one backend.
type scale struct {
	scaleBackend
	bench       *bench
	database    *backing.Host // of its server
	counter     *counter      // of the requests to it, while they are counted
	processors  []int         // that everything runs on
	operations  int
	deployments int // so far
	points      []*point
}

// scaleBackend is a backend on which the part can be measured.
type scaleBackend struct {
	name    string // of the backend, and its server
	backend string // as a configuration has it, with %[1]s for the URL and %[2]d for the deployment
	most    int    // operations of each kind
	start   func(h *backing.Host) (url string)
	count   func(url string) (*counter, error)
}

var (
	scaleDynamo = scaleBackend{
		"dynamodb (dynoxide)", "{type: dynamodb, region: eu-central-1, endpoint: '%[1]s', tablePrefix: 'scale%[2]d_'}",
		1500, func(h *backing.Host) string { return backing.Dynoxide(h).URL }, countDynamo,
	}
	// The stand-in needs more time for each operation.
	scaleMongo = scaleBackend{
		"mongodb (FerretDB on PostgreSQL)", "{type: mongodb, url: '%[1]s', database: scale%[2]d}", 500,
		func(h *backing.Host) string { return backing.MongoOnPostgres(h, backing.StartPostgres(h)).URL }, countMongo,
	}
)

// scales measures how rates and costs change with the number of processes. Everything but the generator is bound to two
// processors, or to one.
func (b *bench) scales(ctx context.Context, requests int, of scaleBackend) error {
	processors, err := kit.Processors()
	if errors.Is(err, kit.ErrProcessors) {
		fmt.Println("scale: not measured:", err)
		return nil
	}
	if err == nil && len(processors) < 2 {
		err = errors.New("it needs two processors")
	}
	if err != nil {
		return err
	}
	if err := setCredentials(); err != nil {
		return err
	}
	s := &scale{bench: b, scaleBackend: of, operations: min(requests, of.most)}
	fmt.Printf("%s, %d operations of each kind, %d connections:\n", s.name, s.operations, scaleConns)
	if err := s.on(ctx, processors[:1], func(url string) error { return s.mapping(ctx, 1, url) }); err != nil {
		return err
	}
	if err := s.on(ctx, processors[:2], func(url string) error { return s.onTwo(ctx, url) }); err != nil {
		return err
	}
	s.conclude()
	for _, p := range s.points {
		b.points = append(b.points, p)
	}
	return b.writePoints()
}

// on starts the database on processors, and calls do with its URL.
func (s *scale) on(ctx context.Context, processors []int, do func(url string) error) error {
	return backing.WithHost(ctx, func(h *backing.Host) error {
		h.On(processors)
		s.database, s.processors = h, processors
		return do(s.start(h))
	})
}

// onTwo measures all that runs on two processors.
func (s *scale) onTwo(ctx context.Context, url string) error {
	for _, workers := range several {
		if err := s.mapping(ctx, workers, url); err != nil {
			return err
		}
	}
	for _, fronts := range several {
		if err := s.requests(ctx, fronts, url); err != nil {
			return err
		}
	}
	if err := s.appends(ctx); err != nil {
		return err
	}
	return s.countRequests(ctx, url)
}

// mapping measures how fast workers apply events that wait for them, and the lag of mappings at a moderate rate.
func (s *scale) mapping(ctx context.Context, workers int, url string) error {
	return s.within(ctx, 1, workers, url, func(d *deployment) error {
		if err := s.parents(ctx, d, max(s.operations, scaleLag.parents)); err != nil {
			return err
		}
		for _, operation := range applied {
			p, err := s.applyHeld(ctx, d, operation, s.operations)
			if err == nil && operation == mapAgain {
				err = s.lag(ctx, d, p)
			}
			if err := s.add(p, err); err != nil {
				return err
			}
		}
		return s.derived(ctx, d, s.add)
	})
}

// The operations that workers execute.
const (
	mapOwn    = "map"        // each event is that of a child of another parent
	mapShared = "map-shared" // of a parent there are several children, whose events any workers receive
	mapAgain  = "map-again"  // the same for the same parents: the workers know by now which of them are contended
)

// applied are the operations of workers on arrays.
var applied = []string{mapOwn, mapShared, mapAgain}

// applyHeld creates children while no worker receives their events, and measures the workers once they do. There have
// to be as many parents.
func (s *scale) applyHeld(ctx context.Context, d *deployment, operation string, children int) (*point, error) {
	p := s.point(operation, d)
	parents := children
	if operation != mapOwn {
		parents = max(1, children/scaleChildren)
	}
	return s.heldBack(ctx, d, p, mapping.Name, children, children, func() error {
		d.children += children
		_, err := closedLoops(d.bases(), scaleConns, children, func(c *client, i int) error {
			return expect(c, 201, "POST", "/children",
				object(fmt.Sprintf("%s-%08d", operation, i), fmt.Sprintf(`"parent":"p-%08d",`, i%parents)))
		})
		return err
	}, func() error { return d.applied(ctx, mapping.Name, 0) })
}

// heldBack measures n operations of a listener, which so many events cause: it receives none before cause has returned
// and everything else is done. done waits until the operations are.
func (s *scale) heldBack(ctx context.Context, d *deployment, p *point, listener string, n, events int,
	cause, done func() error) (*point, error) {
	if err := d.hold(ctx, listener); err != nil {
		return nil, err
	}
	err := cause()
	if err == nil {
		err = d.held(ctx, listener, events)
	}
	if err == nil {
		_, err = d.settle(ctx)
	}
	if err == nil && s.counter == nil {
		err = d.release(ctx, listener)
	}
	if err != nil {
		return nil, err
	}
	return p, s.costs(ctx, d, p, n, d.workers, func() error {
		if s.counter != nil { // not before it counts
			if err := d.release(ctx, listener); err != nil {
				return err
			}
		}
		return done()
	})
}

// parents creates objects for mapped arrays, and waits until the workers have received their events.
func (s *scale) parents(ctx context.Context, d *deployment, parents int) error {
	_, err := closedLoops(d.bases(), scaleConns, parents, create("/parents", "p"))
	if err != nil {
		return err
	}
	return d.applied(ctx, mapping.Name, parents)
}

// requests measures creates and gets, spread over fronts, and the lag of mappings at a moderate rate.
func (s *scale) requests(ctx context.Context, fronts int, url string) error {
	return s.within(ctx, fronts, 1, url, func(d *deployment) error {
		if err := s.parents(ctx, d, scaleLag.parents); err != nil {
			return err
		}
		if _, err := d.settle(ctx); err != nil {
			return err
		}
		p, err := s.creates(ctx, d, s.operations)
		if err != nil {
			return err
		}
		if err := s.add(p, s.lag(ctx, d, p)); err != nil {
			return err
		}
		if err := s.add(s.gets(ctx, d, s.operations)); err != nil || fronts > 1 {
			return err
		}
		return s.alone(ctx, d)
	})
}

// creates measures creates. One is complete when its event is in the log.
func (s *scale) creates(ctx context.Context, d *deployment, n int) (*point, error) {
	p := s.point("create", d)
	before, err := d.events(ctx)
	if err != nil {
		return nil, err
	}
	return p, s.costs(ctx, d, p, n, d.fronts, func() error {
		if _, err := closedLoops(d.bases(), scaleConns, n, create("/items", "i")); err != nil {
			return err
		}
		return d.log.holds(ctx, int(before)+n)
	})
}

func (s *scale) gets(ctx context.Context, d *deployment, n int) (*point, error) {
	if _, err := d.settle(ctx); err != nil {
		return nil, err
	}
	p := s.point("get", d)
	return p, s.costs(ctx, d, p, n, d.fronts, func() error {
		_, err := closedLoops(d.bases(), scaleConns, n, get("i", n))
		return err
	})
}

// profileOfScale is how long a process is profiled, in seconds: most of a short point.
const profileOfScale = 4

// costs measures operations and what they cause, or counts their requests to the database. The first of the processes
// that execute them is profiled, if that is requested.
func (s *scale) costs(ctx context.Context, d *deployment, p *point, n int, executing []*server,
	operate func() error) error {
	if s.counter != nil {
		return s.counter.countCosts(p, n, operate)
	}
	began, err := d.now(ctx)
	if err != nil {
		return err
	}
	var ended moment
	measured := func() (err error) {
		err = operate()
		if err == nil {
			ended, err = d.now(ctx)
		}
		return err
	}
	profile := fmt.Sprintf("scale-%s-%s-%d-on-%d", kind(s.name), p.Operation, len(executing), p.Processors)
	if err := s.bench.profiled(ctx, executing[0], profile, profileOfScale, measured); err != nil {
		return err
	}
	settled, err := d.settle(ctx)
	if err == nil {
		p.measured(n, began, ended, settled)
	}
	return err
}

// lag measures the lag of mappings.
func (s *scale) lag(ctx context.Context, d *deployment, p *point) error {
	l, err := scaleLag.measure(d.bases())
	if err != nil {
		return err
	}
	d.children += scaleLag.creates()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p.Lag = &lagAt{Rate: l.rate, Samples: len(l.lags), P50: ms(percentile(l.lags, 0.5)),
		P99: ms(percentile(l.lags, 0.99))}
	_, err = d.settle(ctx)
	return err
}

func (s *scale) point(operation string, d *deployment) *point {
	return &point{
		Part: "scale", Backend: s.name, Operation: operation,
		Fronts: len(d.fronts), Workers: len(d.workers), Processors: len(d.processors),
	}
}

// add adds a point and prints it, unless there was an error.
func (s *scale) add(p *point, err error) error {
	if err == nil {
		s.points = append(s.points, p)
		p.print()
	}
	return err
}
