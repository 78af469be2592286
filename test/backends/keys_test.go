package backends

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// shared are places that a test and a belfry use in turn: what opens one, and what a configuration says of it.
func shared(t *testing.T) map[string]func() (open func() (driver.Backend, error), settings string) {
	onDynamo := func(server func() *backing.Dynamo) func() (func() (driver.Backend, error), string) {
		return func() (func() (driver.Backend, error), string) {
			at := place()
			return func() (driver.Backend, error) {
				return dynamostore.Open(t.Context(), dynamostore.Options{Region: "eu-central-1", Endpoint: server().URL,
					TablePrefix: at + "_", Timeout: kit.Limit})
			}, fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s', tablePrefix: %s_}", server().URL, at)
		}
	}
	return map[string]func() (func() (driver.Backend, error), string){
		"files": func() (func() (driver.Backend, error), string) {
			folder := filepath.Join(t.TempDir(), "stores")
			return func() (driver.Backend, error) {
				return filestore.Open(folder,
					filestore.Options{})
			}, fmt.Sprintf("{type: file, folder: '%s'}", folder)
		},
		"FerretDB": func() (func() (driver.Backend, error), string) {
			at := place()
			return func() (driver.Backend, error) {
				return mongostore.Open(t.Context(),
					mongostore.Options{URL: patiently(servers.mongo().URL), Database: at})
			}, mongoDatabase(at)
		},
		"dynalite": onDynamo(servers.dynalite), "dynoxide": onDynamo(servers.dynoxide),
	}
}

// unread is a backend as a release uses it that does not read keys which are numbers: the index of the key has none.
type unread struct{ driver.Backend }

func (b unread) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return unreadStore{s}, err
}

type unreadStore struct{ driver.Store }

func (s unreadStore) Put(ctx context.Context, w driver.Write) error {
	w.Keys = nil
	if bytes.Contains(w.Body, []byte(`"ada"`)) {
		w.Keys = []driver.Key{{Index: "map.author", Parts: [][]byte{[]byte("ada")}}}
	}
	return s.Store.Put(ctx, w)
}

// TestWholeNumbersNameObjectsOnEachBackend: what was written before numbers in keys were read gets its entries, lists,
// entries and cascades find numbers and texts alike, and a key that becomes a text or a fraction has the entries of
// that.
func TestWholeNumbersNameObjectsOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, at := range shared(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, settings := at()
			saveBeforeNumbers(t, open)
			config := write(t, t.TempDir(), "belfry.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
data: ./data
bus: {listen: ""}
backends: {default: %s}
stores:
  Authors: {uuid: client, expose: {}}
  Books:
    uuid: client
    expose: {list: true}
    indexes: [author, "author[]"]
    map: {Authors: {key: author, target: books, fields: title, cascade: true}}
`, settings))
			s := process.ServePlain(t, config)
			wantBooks(t,
				s, map[string]string{"1": "old old-all", "2": "old-all", "ada": "old-all old-text",
					"9223372036854775807": "old-max"})
			for _, filter := range []string{"author == 1", "1 in author"} {
				kit.WaitFor(t, "the index for "+filter+" is built", func() bool {
					r, err := ask(s, "GET", "/books?filter="+url.QueryEscape(filter), "")
					return err == nil && r.status == http.StatusOK
				})
			}
			numbersInKeys(t, s)
			verified(t, config)
			for _, author := range []string{"1", "9223372036854775807"} {
				must(t, s, 204, "DELETE", "/authors/"+author, "")
			}
			for _, book := range []string{"old", "old-all", "old-max", "number", "numbers"} {
				kit.WaitFor(t, book+" is deleted with its author",
					func() bool { r, err := ask(s, "GET", "/books/"+book, ""); return err == nil && r.status == 404 })
			}
			wantBooks(t, s, map[string]string{"2": "changed", "ada": "old-text"})
			for _, book := range []string{"old-fraction", "old-large", "leading"} {
				must(t, s, 200, "GET", "/books/"+book, "")
			}
			verified(t, config)
		})
	}
}

// saveBeforeNumbers writes what a release before has written.
func saveBeforeNumbers(t *testing.T, open func() (driver.Backend, error)) {
	t.Helper()
	backend, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backend.Close() }()
	authors := openFor(t, backend, store.Options{Name: "Authors"})
	for _, uuid := range []string{"1", "2", "007", "ada", "9223372036854775807"} {
		saveIn(t, authors, uuid, `{}`)
	}
	books := openFor(t,
		unread{backend},
		store.Options{
			Name: "Books",
			Maps: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author", Array: "books",
				Fields: []string{"title"}, Cascade: true}}})
	for uuid, author := range map[string]string{
		"old": `1`, "old-all": `[1,2,"ada",3]`, "old-text": `"ada"`, "old-max": `9223372036854775807`,
		"old-large": `9223372036854775808`, "old-fraction": `1.0`,
	} {
		saveIn(t, books, uuid, `{"title":"T","author":`+author+`}`)
	}
}

// numbersInKeys creates and changes books whose keys are numbers, and lists them.
func numbersInKeys(t *testing.T, s *process.Server) {
	t.Helper()
	for uuid, author := range map[string]string{"number": `1`, "text": `"1"`, "numbers": `[2,"1"]`, "leading": `"007"`,
		"changed": `1`} {
		must(t, s, 201, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"author":%s,"title":"T"}`, uuid, author))
	}
	wantBooks(t, s,
		map[string]string{"1": "changed number numbers old old-all text", "2": "numbers old-all", "007": "leading"})
	for _, change := range []struct{ author, of1, of2 string }{
		{`"1"`, "changed number numbers old old-all text", "numbers old-all"},
		{`1.0`, "number numbers old old-all text", "numbers old-all"},
		{`1`, "changed number numbers old old-all text", "numbers old-all"},
		{`2`, "number numbers old old-all text", "changed numbers old-all"},
	} {
		must(t, s, 200, "PATCH", "/books/changed", `{"author":`+change.author+`}`)
		wantBooks(t, s, map[string]string{"1": change.of1, "2": change.of2})
	}
	for filter, want := range map[string]string{
		`author == 1`: "number old old-fraction", `author == "1"`: "text", `1 in author`: "old-all",
		`"1" in author`: "numbers", `author == 9223372036854775807`: "old-max",
		`author > 9223372036854775807`: "old-large",
	} {
		reply := must(t, s, 200, "GET", "/books?limit=100&filter="+url.QueryEscape(filter), "")
		if got := sorted(reply.get("items.#.uuid")); got != want {
			t.Errorf("%s finds %s, want %s", filter, got, want)
		}
	}
}

// wantBooks waits until authors have the entries of some books.
func wantBooks(t *testing.T, s *process.Server, authors map[string]string) {
	t.Helper()
	for author, want := range authors {
		process.Eventually(t, patience, func() error {
			r, err := ask(s, "GET", "/authors/"+author, "")
			if err != nil {
				return err
			}
			if got := sorted(r.get("books.#.uuid")); got != want {
				return fmt.Errorf("author %s has the books %s, want %s", author, got, want)
			}
			return nil
		})
	}
}

// sorted are the texts of a JSON array, in order.
func sorted(array string) string {
	all := strings.FieldsFunc(array, func(r rune) bool { return strings.ContainsRune(`[]", `, r) })
	slices.Sort(all)
	return strings.Join(all, " ")
}
