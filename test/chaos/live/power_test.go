package live

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/test/chaos/faultdisk"
	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

const powerConfiguration = `
listen: 127.0.0.1:0
data: %s
bus: {listen: "127.0.0.1:0"}
log: {level: warn}
limits: {loopback: false}
stores:
  Books: {expose: {events: true}, uuid: client}
`

const (
	powerWriters = 8
	powerClients = 4
	// What is written before the power fails; some of it is synced by then, and some is not.
	writtenAtLeast, writtenAtMost = 50, 400
)

// A client of /events that resumes after a power cut has every event of the log from where its last reset put it, in
// order, and none that is not there: what the cut took back of the log is found when the client resumes.
func TestSoakStreamsHaveNoGapsAfterPowerCuts(t *testing.T) {
	folder := t.TempDir()
	disk := faultdisk.New()
	unmount, err := disk.Mount(folder)
	if err != nil {
		t.Logf("only kills, no power cuts, are injected here: %v", err)
		disk = nil
	} else {
		t.Cleanup(func() {
			disk.Heal()
			if err := unmount(); err != nil {
				t.Error(err)
			}
		})
	}
	program, err := programs.BelfryWithoutRace()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, powerConfiguration, filepath.Join(folder, "data")),
		0o600); err != nil {
		t.Fatal(err)
	}
	p := &power{fixture: &fixture{T: t, http: newHTTP()}, program: program, config: config, disk: disk}
	t.Cleanup(func() {
		if p.server != nil {
			p.server.Kill()
		}
	})
	p.start()
	for range powerClients {
		p.clients = append(p.clients, &resumer{client: client{query: "?store=Books", last: "0"}})
	}
	soak := kit.Soak(t, 4)
	for soak.More() {
		random := soak.Rand()
		p.connect()
		p.write(writtenAtLeast + random.IntN(writtenAtMost-writtenAtLeast))
		before := p.resets()
		power := p.disk != nil && soak.Round()%4 != 0
		p.fail(power, random)
		p.connect()
		p.check()
		p.disconnect()
		if n := p.resets() - before; n > 0 && !power {
			t.Fatalf("%d clients were reset after a kill, which takes nothing back", n)
		}
	}
	t.Logf("%d power cuts, %d kills: %d events received, %d resets, 0 gaps", p.cuts, soak.Round()-p.cuts, p.received(),
		p.resets())
}

// power is a belfry on a disk whose power fails, and its clients.
type power struct {
	*fixture
	program, config string
	disk            *faultdisk.Disk // nil where it can't be mounted
	clients         []*resumer
	running         sync.WaitGroup
	written         atomic.Int64
	cuts            int
}

func (p *power) start() {
	p.Helper()
	s, err := process.Start(p.program, nil, "--config", p.config)
	if err != nil {
		p.Fatal(err)
	}
	p.server, p.http = s, newHTTP()
}

// connect has the clients read until disconnect.
func (p *power) connect() {
	p.Helper()
	u, err := url.Parse(p.server.URL)
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range p.clients {
		c.begin(u.Host)
		p.running.Go(c.run)
	}
}

func (p *power) disconnect() {
	for _, c := range p.clients {
		c.end()
	}
	p.running.Wait()
}

// write has clients write until so many writes are acknowledged.
func (p *power) write(count int) {
	p.Helper()
	var acknowledged atomic.Int64
	var failed atomic.Pointer[error]
	var writing sync.WaitGroup
	for range powerWriters {
		writing.Go(func() {
			for acknowledged.Load() < int64(count) && failed.Load() == nil {
				if err := p.post(); err != nil {
					failed.Store(&err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	writing.Wait()
	if err := failed.Load(); err != nil {
		p.Fatal(*err)
	}
}

func (p *power) post() error {
	req, err := http.NewRequestWithContext(p.Context(), http.MethodPost, p.server.URL+"/books",
		strings.NewReader(fmt.Sprintf(`{"uuid":"b%d"}`, p.written.Add(1))))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode >= 300 {
		return fmt.Errorf("POST /books: %d", res.StatusCode)
	}
	return nil
}

// fail ends belfry while its clients read, has the power of its disk fail or not, and starts it again.
func (p *power) fail(power bool, random *rand.Rand) {
	p.Helper()
	if power {
		p.disk.Fail() // from here on nothing is written
	}
	for _, c := range p.clients {
		c.endAfterThis()
	}
	p.server.Kill()
	p.disconnect()
	if power {
		part := random // of what is not synced is there
		if random.IntN(2) == 0 {
			part = nil
		}
		p.disk.Cut(part)
		p.disk.Heal()
		p.cuts++
	}
	p.start()
}

// check compares what the clients have received with the log.
func (p *power) check() {
	p.Helper()
	if err := p.post(); err != nil {
		p.Fatal(err)
	}
	var log []string
	for _, e := range p.log() {
		if e.envelope.Store == "Books" {
			log = append(log, e.envelope.ID)
		}
	}
	for i, c := range p.clients {
		if err := kit.Await(kit.Limit, func() error { return c.has(log) }); err != nil {
			p.Fatalf("client %d after %d power cuts: %v", i, p.cuts, err)
		}
	}
}

func (p *power) received() (n int) {
	for _, c := range p.clients {
		n += c.all + len(c.ids)
	}
	return n
}

func (p *power) resets() (n int) {
	for _, c := range p.clients {
		n += c.resets
	}
	return n
}

// resumer is a client that begins anew with each reset, as an app that reads its lists again.
type resumer struct {
	client
	all, resets int
}

func (c *resumer) begin(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address, c.ended = address, false
	c.onReset = func() {
		c.resets++
		c.all += len(c.ids)
		c.ids = nil
	}
}

// endAfterThis has the client not connect again when its stream ends.
func (c *resumer) endAfterThis() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// has reports what of the log the client has not received, from the first event after its last reset, which is the
// oldest one.
func (c *resumer) has(log []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	for i := range max(len(log), len(c.ids)) {
		switch {
		case i >= len(c.ids):
			return fmt.Errorf("%d events of %d arrived", len(c.ids), len(log))
		case i >= len(log):
			return fmt.Errorf("%d events arrived, the log has %d", len(c.ids), len(log))
		case log[i] != c.ids[i]:
			return errors.New(gap(log, c.ids, i))
		}
	}
	return nil
}

// gap describes where two lists of events differ.
func gap(log, received []string, at int) string {
	missed := 0
	for _, id := range log {
		if !slices.Contains(received, id) {
			missed++
		}
	}
	return fmt.Sprintf("the %dth event differs: %s in the log, %s received; %d of %d events were not received", at+1,
		log[at], received[at], missed, len(log))
}
