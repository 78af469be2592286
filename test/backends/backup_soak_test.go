package backends

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

// Backups are made by the schedule, by commands beside the server and by commands alone, while clients write. The
// server, the commands and restores are killed at random moments. Every backup that exists afterwards is restored: it
// has a state that each client's objects had between its beginning and its end, every copy equals its object, every
// file is there; and the server has lost nothing.
func TestSoakBackupsAreWhole(t *testing.T) {
	t.Parallel()
	t.Run("files", func(t *testing.T) {
		soakBackups(t, 2, true, func(*testing.T, string) string { return "bus: {listen: 127.0.0.1:0}" })
	})
	if !kit.Soak(t, 1).Long() {
		return // a round of the others takes a minute: make test has a backup under load on MongoDB beside this
	}
	t.Run("MongoDB", func(t *testing.T) {
		soakBackups(t, 1, false, func(t *testing.T, name string) string {
			return fmt.Sprintf("bus: {url: %q}\nbackends: {default: %s}", soakBus(t), mongoDatabase("soak_"+name))
		})
	})
	t.Run("DynamoDB", func(t *testing.T) {
		soakBackups(t, 1, false, func(t *testing.T, name string) string {
			return fmt.Sprintf("bus: {url: %q}\nbackends: {default: {type: dynamodb, region: eu-central-1, endpoint: "+
				"'%s', tablePrefix: soak_%s_}}", soakBus(t), servers.dynalite().URL, name)
		})
	})
}

func soakBus(t *testing.T) string {
	return natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
}

const soakStores = `
listen: 127.0.0.1:0
data: ./data
stores:
  Authors: {expose: {}}
  Books:
    uuid: client
    expose: {}
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
binaries:
  files: {map: {Authors: [photos]}}
`

// soaked is an installation whose backups are tested.
type soaked struct {
	*testing.T
	backend func(t *testing.T, name string) string // lines of the configuration of an empty installation
	moment  bool                                   // a backup is of one moment
	config  string
	place   string
	server  atomic.Pointer[process.Server]
	clients []*soakClient
	took    time.Duration   // of the last backup
	tested  map[string]bool // backups
	counts  map[string]int
}

func soakBackups(t *testing.T, rounds int, moment bool, backend func(*testing.T, string) string) {
	s := &soaked{T: t, backend: backend, moment: moment, place: filepath.Join(t.TempDir(), "backups"),
		took: 300 * time.Millisecond, tested: map[string]bool{}, counts: map[string]int{}}
	s.config = s.configure("served", fmt.Sprintf("backup: {folder: %s, schedule: 1m, keep: {last: 4}}\n", s.place))
	soak := kit.Soak(t, rounds)
	s.serve()
	for i := range 3 {
		must(t, s.server.Load(), http.StatusCreated, "POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, i))
	}
	stop := s.write(soak.Seed())
	s.counted(0, 30)
	for soak.More() {
		s.round(soak.Rand(), soak.Round())
	}
	// On a backend with slow indexes each of the others may have been killed: one is made beside the clients.
	process.Eventually(t, soakPatience, func() error {
		if out := <-s.backup(nil); out != "" {
			return errors.New(out) // the schedule makes one
		}
		return nil
	})
	s.testAll(soak.Rand())
	if stop(); s.counts["restores"] == 0 {
		t.Error("no backup was restored")
	}
	s.isServed()
	t.Logf("%d rounds, %d operations: %v", soak.Round()-1, s.operations(), s.counts)
}

// configure writes the configuration of an empty installation.
func (s *soaked) configure(name, more string) string {
	return write(s.T, s.TempDir(), "belfry.yaml", s.backend(s.T, name)+soakStores+more)
}

// soakPatience is for rounds beside other work: a scheduled backup of a backend whose indexes lag takes a minute
// itself.
const soakPatience = 5 * time.Minute

func (s *soaked) serve() { s.server.Store(process.Serve(s.T, s.config)) }

// counted waits until the clients have made so many operations more.
func (s *soaked) counted(before, more int) {
	s.Helper()
	process.Eventually(s, soakPatience, func() error {
		if n := s.operations() - before; n < more {
			return fmt.Errorf("%d of %d operations were acknowledged", n, more)
		}
		return nil
	})
}

func (s *soaked) operations() (n int) {
	for _, c := range s.clients {
		n += len(c.history())
	}
	return n
}

// round makes a backup or kills it, and tests all backups that are complete.
func (s *soaked) round(r *rand.Rand, n int) {
	s.Helper()
	before := s.operations()
	kind := []string{"the server is killed", "the command is killed", "nothing is killed",
		"the command alone is killed", "the server is stopped"}[(n+1)%5]
	switch s.counts[kind]++; kind {
	case "the server is killed":
		done := s.backup(nil)
		s.later(r, done)
		s.server.Load().Kill()
		<-done
		s.serve()
	case "the server is stopped":
		done := s.backup(nil)
		s.later(r, done)
		stop(s.T, s.server.Load())
		<-done
		s.serve()
	case "the command is killed":
		kill := make(chan struct{})
		done := s.backup(kill)
		s.later(r, done)
		close(kill)
		<-done
	case "the command alone is killed": // it has the data
		s.server.Load().Kill()
		kill := make(chan struct{})
		done := s.backup(kill)
		s.later(r, done)
		close(kill)
		<-done
		s.serve()
	default:
		began := time.Now()
		if out := <-s.backup(nil); out == "" {
			s.took = time.Since(began)
			s.counts["backups by command"]++
		} else if !strings.Contains(out, "a backup is being made") { // by the schedule
			s.Errorf("a backup that nothing disturbs: %s", out)
		}
	}
	s.counted(before, 20)
	s.testAll(r)
}

// backup starts the command; kill, once it is closed, kills it. The channel has its output if it has failed, and ""
// otherwise.
func (s *soaked) backup(kill <-chan struct{}) <-chan string {
	return s.command(kill, "backup", "--config", s.config)
}

func (s *soaked) command(kill <-chan struct{}, args ...string) <-chan string {
	done := make(chan string, 1)
	cmd := exec.CommandContext(s.Context(), process.Commands(s.T), args...)
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	go func() {
		defer close(done)
		var err error
		select {
		case err = <-ended:
		case <-kill:
			_ = cmd.Process.Kill()
			err = <-ended
		}
		if err != nil {
			done <- out.String() + err.Error()
			return
		}
		done <- ""
	}()
	return done
}

// later returns at a random moment of a backup, or when it has ended.
func (s *soaked) later(r *rand.Rand, done <-chan string) {
	ctx, cancel := context.WithTimeout(s.Context(), time.Duration(r.Int64N(int64(s.took)+1)))
	defer cancel()
	for ctx.Err() == nil && len(done) == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// testAll restores the backups that were not restored yet.
func (s *soaked) testAll(r *rand.Rand) {
	s.Helper()
	out, _ := belfry(s.T, 0, "backup", "list", "--json", "--config", s.config)
	var all []struct {
		ID             string
		Started, Ended time.Time
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		s.Fatal(err)
	}
	for i, b := range all {
		if s.tested[b.ID] || i+1 < len(all)-1 { // the retention may remove the oldest meanwhile
			continue
		}
		s.tested[b.ID] = true
		s.testOne(r, b.ID, b.Started, b.Ended)
	}
}

// testOne restores a backup, and kills the restore first.
func (s *soaked) testOne(r *rand.Rand, id string, started, ended time.Time) {
	s.Helper()
	s.counts["restores"]++
	config := s.configure(fmt.Sprintf("restored%d", s.counts["restores"]), "")
	restore := []string{"restore", "--config", config, "--place", s.place, "--backup", id}
	killed := r.IntN(2) == 0
	if killed {
		kill := make(chan struct{})
		done := s.command(kill, restore...)
		s.later(r, done)
		close(kill)
		<-done
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(config), "data", "restore.json")); err == nil {
		s.counts["restores killed with a part written"]++
		if _, errOut := belfry(s.T, 1, "serve", "--config", config); !strings.Contains(errOut,
			"run `belfry restore` again") {
			s.Errorf("a restore was killed, and serve reports %s", errOut)
		}
	}
	// One that was killed at its very end is complete.
	if out := <-s.command(nil, restore...); out != "" && (!killed || !strings.Contains(out, "is not empty")) {
		s.Fatalf("backup %s can't be restored: %s", id, out)
	}
	belfry(s.T, 0, "verify", "--deep", "--config", config) // the schedule makes one before anything is written
	s.equalsAState(config, id, started, ended)
}

// operation is a write of a client, which it repeats until it is acknowledged.
type operation struct {
	uuid, title          string // no title: a deletion
	issued, acknowledged time.Time
}

// soakClient writes books that no other client writes, one after the other.
type soakClient struct {
	name string
	mu   sync.Mutex
	all  []operation
}

func (c *soakClient) history() []operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// write has clients write until stop is called.
func (s *soaked) write(seed uint64) (stop func()) {
	for i := range 3 {
		s.clients = append(s.clients, &soakClient{name: fmt.Sprintf("c%d", i)})
	}
	_, stop = kit.Writing(len(s.clients), func(i, n int) (string, bool) {
		if i == 0 && n%5 == 0 {
			s.upload(n / 5)
		}
		s.operate(s.clients[i], rand.New(rand.NewPCG(seed, uint64(i)<<32+uint64(n))), n)
		return "", s.Context().Err() == nil && !s.Failed()
	})
	return stop
}

// upload uploads the n-th file.
func (s *soaked) upload(n int) {
	place := "add"
	if n > 9 {
		place = fmt.Sprint(n % 10) // is replaced
	}
	s.until("PUT", "/binary/upload/Authors/a0/photos/"+place,
		fmt.Sprintf("%d %s", n, strings.Repeat("picture", n*5%5000)))
}

func (s *soaked) operate(c *soakClient, r *rand.Rand, n int) {
	uuid := fmt.Sprintf("%s-%d", c.name, r.IntN(40))
	exists := false
	for _, o := range slices.Backward(c.all) {
		if o.uuid == uuid {
			exists = o.title != ""
			break
		}
	}
	o := operation{uuid: uuid, title: fmt.Sprint(n), issued: time.Now()}
	if exists && r.IntN(5) == 0 {
		o.title = ""
	}
	c.mu.Lock()
	c.all = append(c.all, o)
	c.mu.Unlock()
	body := fmt.Sprintf(`{"uuid":%q,"author":"a%d","title":%q}`, uuid, r.IntN(3), o.title)
	var wait []string
	if r.IntN(2) == 0 { // until the copies are made: faster than the workers, clients would only make them late
		wait = []string{"Prefer", "wait=10"}
	}
	switch {
	case o.title == "":
		s.until("DELETE", "/books/"+uuid, "", wait...)
	case exists:
		s.until("PUT", "/books/"+uuid, body, wait...)
	default:
		s.until("POST", "/books", body, wait...)
	}
	c.mu.Lock()
	c.all[len(c.all)-1].acknowledged = time.Now()
	c.mu.Unlock()
}

// until repeats a request until it has succeeded; or is refused because it has, before the server was killed.
func (s *soaked) until(method, path, body string, headers ...string) {
	for again := false; s.Context().Err() == nil; again = true {
		r, err := request(s.server.Load().URL, method, path, body, headers...)
		switch {
		case err == nil &&
			(r.status < 300 || again && (r.status == http.StatusNotFound || r.status == http.StatusConflict)):
			return
		case err == nil && r.status != http.StatusServiceUnavailable && r.status != http.StatusTooManyRequests:
			s.Errorf("%s %s: %d %s", method, path, r.status, r.body)
			return
		}
		<-time.After(5 * time.Millisecond)
	}
}

// books returns the titles of all books that a stopped or a serving belfry has.
func (s *soaked) books(config string) map[string]string {
	all := map[string]string{}
	lines := json.NewDecoder(strings.NewReader(export(s.T, config, "Books")))
	for lines.More() {
		var book struct{ UUID, Title string }
		if err := lines.Decode(&book); err != nil {
			s.Fatal(err)
		}
		all[book.UUID] = book.Title
	}
	return all
}

// equalsAState checks that an installation has the objects of each client as they were at one moment between two; where
// a backup is not of one moment, each object as it was at one.
func (s *soaked) equalsAState(config, id string, from, to time.Time) {
	s.Helper()
	books := s.books(config)
	for _, c := range s.clients {
		history := c.history()
		mine := map[string]string{}
		for uuid, title := range books {
			if strings.HasPrefix(uuid, c.name+"-") {
				mine[uuid] = title
			}
		}
		if s.moment {
			if !equalsOne(history, mine, from, to) {
				s.Errorf("backup %s: the books of %s were never %v", id, c.name, mine)
			}
			continue
		}
		for n := range 40 {
			uuid := fmt.Sprintf("%s-%d", c.name, n)
			its := slices.DeleteFunc(slices.Clone(history), func(o operation) bool { return o.uuid != uuid })
			one := map[string]string{}
			if title, found := mine[uuid]; found {
				one[uuid] = title
			}
			if !equalsOne(its, one, from, to) {
				s.Errorf("backup %s: %s was never %v", id, uuid, one)
			}
		}
	}
}

// equalsOne reports whether objects equal the state after the first n operations, for an n that has every operation
// that was acknowledged before from, and none that was begun after to.
func equalsOne(history []operation, objects map[string]string, from, to time.Time) bool {
	state := map[string]string{}
	for n := 0; ; n++ {
		due := n < len(history) && !history[n].acknowledged.IsZero() && history[n].acknowledged.Before(from)
		if !due && maps.Equal(state, objects) {
			return true
		}
		if n == len(history) || history[n].issued.After(to) {
			return false
		}
		if o := history[n]; o.title == "" {
			delete(state, o.uuid)
		} else {
			state[o.uuid] = o.title
		}
	}
}

// isServed checks that the server has everything that was acknowledged, and every copy.
func (s *soaked) isServed() {
	s.Helper()
	idle(s.T, s.server.Load())
	now := time.Now()
	s.equalsAState(s.config, "none, the server", now, now)
	stop(s.T, s.server.Load())
	verified(s.T, s.config)
}
