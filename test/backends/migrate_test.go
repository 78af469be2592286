package backends

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// fixture is a folder of configurations that differ in the places of stores, and an external bus that a
// test stops.
type fixture struct {
	*testing.T
	folder, busFolder string
	port              int
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, folder: t.TempDir(), busFolder: t.TempDir(), port: kit.FreePort(t)}
}

func (y *fixture) busURL() string { return fmt.Sprintf("nats://127.0.0.1:%d", y.port) }

// config writes a configuration: backends besides the default, where authors
// and books are, and where the contents.
func (y *fixture) config(name, backends, authors, books, contents string) string {
	y.Helper()
	if contents != "" {
		contents += ", "
	}
	return write(y.T, y.folder, name+".yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
data: ./data
bus: {url: %q}
backends: {%s}
stores:
  Authors: {expose: {}, backend: %s}
  Books:
    backend: %s
    expose: {list: true}
    indexes: [title]
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
binaries:
  binary: {%smap: {Books: [covers]}}
`, y.busURL(), backends, authors, books, contents))
}

// known holds the writes that were acknowledged before a migration.
type known struct {
	events  []eventKey
	deleted []string // books
	books   map[string]reply
}

const authors, books = 4, 30

// fill writes while the bus is unavailable, so that every event is pending.
func (y *fixture) fill(s *process.Server) *known {
	y.Helper()
	k := &known{books: map[string]reply{}}
	note := func(store, uuid string, r reply) {
		var revision uint64
		if _, err := fmt.Sscanf(r.header.Get("ETag"), `"%d"`, &revision); err != nil {
			y.Fatalf("%s %s: %v in %q", store, uuid, err, r.header.Get("ETag"))
		}
		k.events = append(k.events, eventKey{store, uuid, revision})
	}
	for i := range authors {
		uuid := fmt.Sprintf("a%d", i)
		note("Authors", uuid, must(y.T, s, 201, "POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, uuid)))
	}
	for i := range books {
		uuid := fmt.Sprintf("b%02d", i)
		note("Books",
			uuid, must(y.T, s, 201, "POST", "/books",
				fmt.Sprintf(`{"uuid":%q,"author":"a%d","title":"first %d"}`, uuid, i%authors, i)))
		if i%3 == 0 {
			note("Books", uuid, must(y.T, s, 200, "PUT", "/books/"+uuid, fmt.Sprintf(`{"title":"second %d"}`, i)))
		}
		if i%5 == 0 {
			must(y.T, s, 201, "PUT", "/binary/upload/Books/"+uuid+"/covers/add", fmt.Sprintf("cover %d", i))
		}
		if i%7 == 0 {
			must(y.T, s, 204, "DELETE", "/books/"+uuid, "")
			k.deleted = append(k.deleted, uuid)
		}
	}
	must(y.T, s, 204, "DELETE", "/authors/a3", "") // a cascade deletes its books later
	for i := range books {
		uuid := fmt.Sprintf("b%02d", i)
		k.books[uuid], _ = ask(s, "GET", "/books/"+uuid, "")
	}
	return k
}

// check compares the objects with those before the migration, once the pending
// events are published and the workers have applied them.
func (y *fixture) check(config string, k *known) {
	y.Helper()
	bus := process.StartBus(y.T, y.busFolder, y.port)
	defer bus.Kill()
	s := process.ServePlain(y.T, config)
	idle(y.T, s)
	for uuid, before := range k.books {
		now := must(y.T, s, map[bool]int{true: 404, false: before.status}[y.ofA3(uuid)], "GET", "/books/"+uuid, "")
		if now.status == 200 && !same(now, before) {
			y.Errorf("%s is %s %s, was %s %s", uuid, now.header.Get("ETag"), now.body, before.header.Get("ETag"),
				before.body)
		}
		if now.status == 200 && now.get("covers.0.hash") != "" {
			cover := must(y.T, s, 200, "GET", "/binary/Books/"+uuid+"/covers/0", "")
			if want := "cover " + strings.TrimPrefix(strings.TrimPrefix(uuid, "b"), "0"); string(cover.body) != want {
				y.Errorf("the cover of %s is %q", uuid, cover.body)
			}
		}
	}
	received := logged(y.T, bus.URL)
	for _, e := range k.events {
		if received[e] != 1 {
			y.Errorf("the event of %v is in the log %d times", e, received[e])
		}
	}
	for _, uuid := range k.deleted {
		n := 0
		for e := range received {
			if e.store == "Books" && e.uuid == uuid {
				n++
			}
		}
		if n < 2 {
			y.Errorf("%d events of the deleted %s are in the log", n, uuid)
		}
	}
	must(y.T, s, 404, "GET", "/authors/a3", "")
	verified(y.T, config)
	must(y.T, s, 201, "POST", "/books", `{"uuid":"new","author":"a0","title":"new"}`)
	eventually(y.T, s, "/authors/a0", `books.#(uuid=="new").title`, "new")
	stop(y.T, s)
	verified(y.T, config)
}

func (y *fixture) ofA3(book string) bool {
	var n int
	if _, err := fmt.Sscanf(book, "b%02d", &n); err != nil {
		y.Fatal(err)
	}
	return n%authors == 3
}

// report is the output of migrate --json.
type report struct {
	Stores, Binaries []struct {
		Name                    string
		Records, Copied, Events int
		Differences             []string
	}
	Stayed, Notes []string
}

func (y *fixture) migrate(exit int, from, to string) (r report) {
	y.Helper()
	out, _ := belfryWithRace(y.T, exit, "migrate", "--json", "--from", from, "--to", to)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		y.Fatalf("%v in %s", err, out)
	}
	return r
}

func (r report) of(name string) (records, copied, events int) {
	for _, s := range append(r.Stores, r.Binaries...) {
		if s.Name == name {
			return s.Records, s.Copied, s.Events
		}
	}
	return -1, -1, -1
}

// Objects and their pending events are migrated between backends while the bus is
// unavailable.
func TestMigrateCopiesObjectsAndPendingEvents(t *testing.T) {
	t.Parallel()
	for name, places := range map[string]func() (from, to, contents string){
		"file to mongodb": func() (string, string, string) {
			return "p: {type: file}", "p: " + mongo(), "folder: ./contents"
		},
		"mongodb to dynamodb": func() (string, string, string) {
			return "p: " + mongo(), "p: " + dynamo(servers.dynoxide()), contents()
		},
		"dynamodb to file": func() (string, string, string) {
			return "p: " + dynamo(servers.dynoxide()), "p: {type: file}", ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			oldPlace, newPlace, contents := places()
			from := y.config("from", oldPlace, "p", "p", "")
			to := y.config("to", newPlace, "p", "p", contents)
			s := process.ServePlain(t, from)
			k := y.fill(s)
			_, errOut := belfry(t, 1, "migrate", "--from", from, "--to", to)
			if !strings.Contains(errOut, "in use by belfry serve") {
				t.Errorf("while belfry serves, migrate reports %s", errOut)
			}
			stop(t, s)

			r := y.migrate(0, from, to)
			alive := books - len(k.deleted)
			if records, copied, events := r.of("Books"); records != alive || copied != books ||
				events < len(k.events)-authors+len(k.deleted) {
				t.Errorf("of the books %d records, %d copied, %d events: want %d, %d, and all: %+v", records, copied,
					events, alive, books, r)
			}
			if _, _, events := r.of("Authors"); events != authors+1 {
				t.Errorf("%d events of authors, want %d", events, authors+1)
			}
			if records, copied, _ := r.of("binary"); contents != "" && (records == 0 || copied != records) {
				t.Errorf("%d contents, %d copied", records, copied)
			}
			again, _ := belfry(t, 0, "migrate", "--from", from, "--to", to)
			if strings.Count(again, " 0 copied") != strings.Count(again, " copied") ||
				!strings.Contains(again, "Books") {
				t.Errorf("again: %s", again)
			}
			y.check(to, k)

			// The destination has been written to since.
			_, errOut = belfry(t, 1, "migrate", "--from", from, "--to", to)
			if !strings.Contains(errOut, "at a newer revision: something else writes to it") {
				t.Errorf("with a destination in use migrate reports %s", errOut)
			}
			verified(t, to)
		})
	}
}

// Two stores exchange their backends, and files get another folder.
func TestMigrateExchangesTheBackendsOfStores(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	const two = "one: {type: file}, two: {type: file}"
	from, to := y.config("from", two, "one", "two", "folder: ./contents"),
		y.config("to", two, "two", "one", "folder: ./elsewhere")
	s := process.ServePlain(t, from)
	k := y.fill(s)
	stop(t, s)
	r := y.migrate(0, from, to)
	if records, copied, _ := r.of("binary"); len(r.Stores) != 2 || len(r.Stayed) == 0 || records == 0 ||
		copied != records {
		t.Errorf("moved and stayed: %+v", r)
	}
	y.check(to, k)
}

// A store whose backend is the same in both configurations is not copied.
func TestMigrateCopiesOnlyStoresWhoseBackendChanges(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	from := y.config("from", "p: {type: file}", "p", "p", "")
	to := y.config("to", "p: {type: file}, q: "+mongo(), "q", "p", "")
	s := process.ServePlain(t, from)
	k := y.fill(s)
	stop(t, s)
	out, _ := belfry(t, 0, "migrate", "--from", from, "--to", to)
	for _, want := range []string{"\nBooks: not moved, its place is the same\n",
		"binaries.binary: not moved, its place is the same\n",
		"\nAuthors: 3 objects, 4 copied, 5 pending events, 0 differences\n", "serve with the new configuration"} {
		if !strings.Contains("\n"+out, want) {
			t.Errorf("migrate does not print %q:\n%s", want, out)
		}
	}
	y.check(to, k)
}

// Corrupt contents are reported, and objects that only the destination has.
func TestMigrateReportsDifferences(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	from := y.config("from", "p: {type: file}", "p", "p", "folder: ./contents")
	to := y.config("to", "p: {type: file, folder: ./elsewhere}", "p", "p", contents())
	s := process.ServePlain(t, from)
	y.fill(s)
	bad := must(t, s, 200, "GET", "/books/b05", "").get("covers.0.hash")
	stop(t, s)
	damaged := 0
	err := filepath.WalkDir(filepath.Join(y.folder, "contents"), func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, bad) {
			damaged++
			err = os.WriteFile(path, []byte("COVER 5"), 0o600)
		}
		return err
	})
	if err != nil || damaged != 1 {
		t.Fatalf("%d damaged: %v", damaged, err)
	}
	extra := process.ServePlain(t, to)
	must(t, extra, 201, "POST", "/authors", `{"uuid":"stray"}`)
	stop(t, extra)

	r := y.migrate(1, from, to)
	text := fmt.Sprint(r)
	for _, want := range []string{bad + ": not copied because it is corrupt", "stray: only in the destination"} {
		if !strings.Contains(text, want) {
			t.Errorf("migrate does not report %q: %s", want, text)
		}
	}
	out, _ := belfry(t, 1, "migrate", "--from", from, "--to", to)
	if !strings.Contains(out, "Authors: 3 objects, 0 copied, 5 pending events, 1 difference") ||
		!strings.Contains(out, "something differs") {
		t.Errorf("as text:\n%s", out)
	}
	out, _ = belfry(t, 1, "verify", "--deep", "--config", to)
	if !strings.Contains(out, bad) {
		t.Errorf("verify does not report %s:\n%s", bad, out)
	}
}

func TestMigrateRefusesUnsuitableConfigurations(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	good := y.config("good", "p: {type: file}", "p", "p", "")
	less := write(t, y.folder, "less.yaml", "stores: {Authors: {}}\n")
	wrong := write(t, y.folder, "wrong.yaml", "stores: {Authors: {backend: p}}\n")
	unavailable := y.config("unavailable", "p: "+dynamo(&backing.Dynamo{URL: "http://127.0.0.1:1"}), "p", "p", "")
	belfryServed(t, good)
	for _, c := range []struct {
		exit     int
		from, to string
		message  string
	}{
		{2, good, less, "less.yaml:1:1: stores: has no store Books, which the old configuration has: add it, as the " +
			"place for its objects"},
		{2, good, less, "less.yaml:1:1: binaries: has no service binary"},
		{2, wrong, good, "stores.Authors.backend"},
		{2, good, wrong, "stores.Authors.backend"},
		{2, good, filepath.Join(y.folder, "none.yaml"), "cannot be read"},
		{2, write(t, t.TempDir(), "never.yaml", "stores: {Authors: {}}\n"), good, "the data folder has no data yet"},
		{1, good, unavailable, "DynamoDB at 127.0.0.1:1 does not respond"},
	} {
		if _, errOut := belfry(t, c.exit, "migrate", "--from", c.from, "--to", c.to); !strings.Contains(errOut,
			c.message) {
			t.Errorf("migrate %s %s does not report %q:\n%s", filepath.Base(c.from), filepath.Base(c.to), c.message,
				errOut)
		}
	}
}

// belfryServed starts a belfry with a configuration and stops it again.
func belfryServed(t *testing.T, config string) {
	t.Helper()
	stop(t, process.ServePlain(t, config))
}
