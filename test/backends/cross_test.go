package backends

import (
	"fmt"
	"testing"

	"belfry/test/process"
)

// Users are on MongoDB, books in files, tags on DynamoDB. Mappings and cascades
// work across them.
func TestMappingsAndCascadesWorkAcrossBackends(t *testing.T) {
	t.Parallel()
	config := write(t, t.TempDir(), "belfry.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
bus: {listen: ""}
backends:
  documents: %s
  tables: %s
stores:
  Users: {backend: documents}
  Authors: {backend: documents, expose: {}}
  Books:
    expose: {list: true}
    indexes: [author]
    map: {Authors: {key: author, target: books, fields: "title, tags", cascade: true}}
  Tags:
    backend: tables
    expose: {list: true}
    indexes: [book]
    map:
      Books: {key: book, target: labels, fields: name, cascade: true}
      Authors: {key: authors, target: tags, fields: name}
`, mongo(), dynamo(servers.dynalite())))
	s := process.Serve(t, config)
	const books = 5
	for _, author := range []string{"ada", "eve"} {
		must(t, s, 201, "POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, author))
		for i := range books {
			book := fmt.Sprintf("%s-%d", author, i)
			must(t, s, 201, "POST", "/books", fmt.Sprintf(`{"uuid":%q,"author":%q,"title":"one"}`, book, author))
			must(t, s, 201, "POST", "/tags",
				fmt.Sprintf(`{"uuid":%q,"book":%q,"authors":["ada","eve"],"name":"x"}`, "tag-"+book, book))
		}
	}
	must(t, s, 200, "PUT", "/books/ada-3", `{"title":"two"}`)
	must(t, s, 200, "PUT", "/tags/tag-ada-3", `{"name":"y"}`)
	eventually(t, s, "/authors/ada", "books.#", fmt.Sprint(books))
	eventually(t, s, "/authors/ada", `books.#(uuid=="ada-3").title`, "two")
	eventually(t, s, "/authors/eve", "tags.#", fmt.Sprint(2*books))
	eventually(t, s, "/books/ada-3", "labels.0.name", "y")
	must(t, s, 204, "DELETE", "/authors/ada", "")
	idle(t, s)
	for i := range books {
		must(t, s, 404, "GET", fmt.Sprintf("/books/ada-%d", i), "")
		must(t, s, 404, "GET", fmt.Sprintf("/tags/tag-ada-%d", i), "")
		must(t, s, 200, "GET", fmt.Sprintf("/tags/tag-eve-%d", i), "")
	}
	eventually(t, s, "/authors/eve", "tags.#", fmt.Sprint(books))
	verified(t, config)
	s.Kill()
	s = process.Serve(t, config)
	if got := must(t, s, 200, "GET", "/tags?filter=book+%3D%3D+%22eve-2%22", "").get("items.#"); got != "1" {
		t.Errorf("after a crash the list of tags has %s", got)
	}
	stop(t, s)
	verified(t, config)
}
