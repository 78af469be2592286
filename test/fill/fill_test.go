// Package fill kills belfry while it fills the arrays of mappings that were added, changed or removed, under writes:
// arrays are those of the configuration in the end.
package fill

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// patience is how long a fill may take: a process that was killed counts as gone after half a minute, and the one that
// takes over may be killed as well.
const patience = 5 * time.Minute

// mapping is one of those that the configurations have.
type mapping struct {
	text   string // in the configuration of Books; "": none
	fields []string
	when   func(year int) bool
}

var mappings = []mapping{
	{},
	{text: "map: {Authors: {key: author, target: books, fields: title, cascade: true}}", fields: []string{"title"}},
	{text: "map: {Authors: {key: author, target: books, fields: 'title, year', cascade: true}}",
		fields: []string{"title", "year"}},
	{text: "map: {Authors: {key: author, target: books, fields: title, when: 'source.year >= 50', cascade: true}}",
		fields: []string{"title"}, when: func(year int) bool { return year >= 50 }},
	{text: "map: {Authors: {key: editor, target: books, fields: year, cascade: true}}", fields: []string{"year"}},
}

func (m mapping) key() string {
	if strings.Contains(m.text, "key: editor") {
		return "editor"
	}
	return "author"
}

// installation is one belfry on files, or two that share a MongoDB and a bus.
type installation struct {
	*testing.T
	program, folder string
	bus, mongo      string
	authors, books  int
	serving         mapping

	mu      sync.RWMutex
	servers []*process.Server // nil: killed
	wrote   atomic.Int64
	kills   int
}

func install(t *testing.T, cluster bool) *installation {
	i := &installation{T: t, program: process.Commands(t), folder: t.TempDir(), authors: 30, books: 150,
		servers: make([]*process.Server, 1)}
	if cluster {
		i.bus = process.StartBus(t, t.TempDir(), kit.FreePort(t)).URL
		i.mongo = backing.Mongo(t)
		i.authors, i.books, i.servers = 120, 400, make([]*process.Server, 2)
	}
	t.Cleanup(func() {
		for n := range i.servers {
			i.kill(n)
		}
	})
	return i
}

// config writes the configuration of a process.
func (i *installation) config(n int) string {
	bus, backend := `{listen: ""}`, "{}"
	if i.mongo != "" {
		bus, backend = fmt.Sprintf("{url: %q}", i.bus), fmt.Sprintf("{type: mongodb, url: %q}", i.mongo)
	}
	text := fmt.Sprintf(`
listen: 127.0.0.1:0
data: ./data-%d
bus: %s
fillRate: 100
backends: {default: %s}
stores:
  Authors: {expose: {list: true}}
  Books: {expose: {list: true}, %s}
`, n, bus, backend, i.serving.text)
	text = strings.Replace(text, "{list: true}, }", "{list: true}}", 1)
	file := filepath.Join(i.folder, fmt.Sprintf("belfry-%d.yaml", n))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		i.Fatal(err)
	}
	return file
}

func (i *installation) start(n int) {
	i.Helper()
	s, err := process.Start(i.program, nil, "--config", i.config(n))
	if err != nil {
		i.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.servers[n] = s
}

func (i *installation) take(n int) *process.Server {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.servers[n]
	i.servers[n] = nil
	return s
}

func (i *installation) kill(n int) {
	if s := i.take(n); s != nil {
		s.Kill()
	}
}

func (i *installation) stop(n int) {
	if s := i.take(n); s != nil {
		if err := s.Stop(); err != nil {
			i.Errorf("stopping: %v\n%s", err, s.Log())
		}
	}
}

// any returns the URL of a process that serves, "" for none.
func (i *installation) any() string {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, n := range rand.Perm(len(i.servers)) {
		if s := i.servers[n]; s != nil {
			return s.URL
		}
	}
	return ""
}

var client = &http.Client{Timeout: kit.Limit}

// do makes a request, which a kill may interrupt.
func (i *installation) do(method, path, body string) ([]byte, error) {
	url := i.any()
	if url == "" {
		return nil, errors.New("nobody serves")
	}
	req, err := http.NewRequestWithContext(i.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, data)
	}
	return data, err
}

func (i *installation) author(r *rand.Rand) string { return fmt.Sprint("a", r.IntN(i.authors)) }

// write makes one random write. Without a mapping the array is a property of the client's.
func (i *installation) write(r *rand.Rand) {
	book := fmt.Sprint("/books/b", r.IntN(i.books))
	var err error
	switch n := r.IntN(20); {
	case n < 8:
		_, err = i.do("PATCH", book, fmt.Sprintf(`{"title":"T%d","year":%d}`, r.IntN(1000), r.IntN(100)))
	case n < 12:
		_, err = i.do("PATCH", book, fmt.Sprintf(`{"author":%q,"editor":%q}`, i.author(r), i.author(r)))
	case n < 14:
		_, err = i.do("DELETE", book, "")
	case n < 18:
		_, err = i.do("POST",
			"/books", fmt.Sprintf(`{"uuid":%q,"author":%q,"editor":%q,"title":"N","year":%d}`,
				strings.TrimPrefix(book, "/books/"), i.author(r), i.author(r), r.IntN(100)))
	case n == 18:
		_, err = i.do("DELETE", "/authors/"+i.author(r), "")
	case i.serving.text == "" && r.IntN(2) == 0:
		_, err = i.do("PATCH", "/authors/"+i.author(r), `{"books":"of the client"}`)
	default:
		_, err = i.do("POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, i.author(r)))
	}
	if err == nil {
		i.wrote.Add(1)
	}
}

// writing writes until stop is called.
func (i *installation) writing(seed uint64) (stop func()) {
	ended := make(chan struct{})
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			for {
				select {
				case <-ended:
					return
				default:
					i.write(r)
				}
			}
		})
	}
	return func() { close(ended); writers.Wait() }
}

// filled returns an error unless all processes say that the arrays are filled.
func (i *installation) filled() error {
	for _, s := range i.servers {
		v, err := s.Metric("belfry_mapping_filled")
		if err == nil && v != 2 { // the other is that of idents in users
			err = errors.New("the arrays are not filled")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// targets returns how many targets the processes that run have filled.
func (i *installation) targets() (n float64) {
	for _, s := range i.servers {
		if v, err := s.Metric("belfry_mapping_fill_targets_total"); err == nil {
			n += v
		}
	}
	return n
}

// list returns all objects of a store.
func (i *installation) list(path string) (all []map[string]any) {
	i.Helper()
	for cursor := ""; ; {
		data, err := i.do("GET", path+"?limit=500&cursor="+cursor, "")
		var page struct {
			Items  []map[string]any `json:"items"`
			Cursor string           `json:"cursor"`
		}
		if err == nil {
			err = json.Unmarshal(data, &page)
		}
		if err != nil {
			i.Fatal(err)
		}
		all = append(all, page.Items...)
		if cursor = page.Cursor; cursor == "" {
			return all
		}
	}
}

// right compares the arrays with the books, by themselves and by belfry verify.
func (i *installation) right() {
	i.Helper()
	want := map[string]map[string]string{} // author → book → entry
	for _, b := range i.list("/books") {
		author, _ := b[i.serving.key()].(string)
		year, _ := b["year"].(float64)
		if author == "" || i.serving.when != nil && !i.serving.when(int(year)) {
			continue
		}
		entry := map[string]any{"uuid": b["uuid"]}
		for _, f := range i.serving.fields {
			if v, ok := b[f]; ok {
				entry[f] = v
			}
		}
		if want[author] == nil {
			want[author] = map[string]string{}
		}
		want[author][b["uuid"].(string)] = fmt.Sprint(entry)
	}
	authors := i.list("/authors")
	if len(authors) == 0 {
		i.Fatal("there are no authors")
	}
	for _, a := range authors {
		got := map[string]string{}
		entries, isArray := a["books"].([]any)
		if a["books"] != nil && !isArray {
			i.Errorf("%v has %v", a["uuid"], a["books"])
		}
		for _, e := range entries {
			entry := e.(map[string]any)
			got[entry["uuid"].(string)] = fmt.Sprint(entry)
		}
		if expected := want[a["uuid"].(string)]; !maps.Equal(got, expected) {
			i.Errorf("%v has %v, want %v", a["uuid"], got, expected)
		}
	}
	out, stderr, exit, err := process.Run(i.program, "verify", "--config", i.config(0))
	if err != nil || exit != 0 {
		i.Errorf("verify: %d, %v\n%s%s", exit, err, out, stderr)
	}
}

// round serves another mapping, with processes that are killed while they fill.
func (i *installation) round(r *rand.Rand) {
	i.Helper()
	others := slices.DeleteFunc(slices.Clone(mappings), func(m mapping) bool { return m.text == i.serving.text })
	for n := range i.servers {
		if r.IntN(2) == 0 {
			i.stop(n)
		} else {
			i.kill(n)
		}
	}
	i.serving = others[r.IntN(len(others))]
	for n := range i.servers {
		i.start(n)
	}
	stop := i.writing(r.Uint64())
	defer func() { stop() }()
	if i.serving.text == "" {
		before := i.wrote.Load()
		process.Eventually(i, patience, func() error {
			if i.wrote.Load() < before+200 {
				return errors.New("few writes")
			}
			return nil
		})
		return
	}
	begun := 0
	for range r.IntN(3) {
		after := float64(r.IntN(i.authors / 2))
		process.Eventually(i, patience, func() error {
			if i.targets() <= after && i.filled() != nil {
				return errors.New("the fill has not begun")
			}
			return nil
		})
		n := r.IntN(len(i.servers))
		begun += strings.Count(i.servers[n].Log(), "filling its arrays from the objects")
		i.kill(n)
		i.kills++
		i.start(n)
	}
	process.Eventually(i, patience, i.filled)
	stop()
	stop = func() {}
	for _, s := range i.servers {
		if err := s.Idle(); err != nil {
			i.Fatal(err)
		}
		begun += strings.Count(s.Log(), "filling its arrays from the objects")
	}
	if err := i.filled(); err != nil {
		i.Error(err)
	}
	if begun > 1 {
		i.Errorf("the fill was begun %d times, not continued", begun)
	}
	i.right()
	if i.Failed() {
		for n, s := range i.servers {
			i.Logf("process %d:\n%s", n, s.Log())
		}
		i.FailNow()
	}
}

// In a long run two processes share a MongoDB; else it is one, on files.
func TestSoakArraysAreFilledWhateverIsKilled(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 1)
	i := install(t, soak.Long())
	for n := range i.servers {
		i.start(n)
	}
	r := rand.New(rand.NewPCG(soak.Seed(), 1))
	for n := range i.authors {
		if _, err := i.do("POST", "/authors", fmt.Sprintf(`{"uuid":"a%d"}`, n)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range i.books {
		if _, err := i.do("POST",
			"/books", fmt.Sprintf(`{"uuid":"b%d","author":%q,"editor":%q,"title":"T","year":%d}`, n, i.author(r),
				i.author(r), r.IntN(100))); err != nil {
			t.Fatal(err)
		}
	}
	rounds := 0
	for soak.More() {
		// The first numbers of seeds that follow each other are alike.
		i.round(rand.New(rand.NewPCG(soak.Seed()*0x9e3779b97f4a7c15, 2)))
		rounds++
	}
	t.Logf("%d rounds, %d kills, %d writes", rounds, i.kills, i.wrote.Load())
}
