package app

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// What a computed property can't be is reported at start, with its place.
func TestCheckReportsComputedPropertiesThatCannotBe(t *testing.T) {
	p := newPlace(t, "")
	if err := os.WriteFile(filepath.Join(p.folder, "author.json"),
		[]byte(`{"properties":{"first":{"type":"string"},"born":{"type":"integer"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := p.load(`stores:
  Authors:
    schema: author.json
    computed:
      label: fisrt + "!"
      age: first - 1
      leak: phone + ""
      hidden: phone + ""
    fields: {phone: {read: isOwner}, hidden: {read: isOwner}}
    owner: user
    map: {Publishers: {key: publisher, target: authors, fields: "count"}}
  Books:
    map: {Authors: {key: author, target: books, fields: rank}}
    computed: {rank: "size(pages)"}
  Pages:
    map: {Books: {key: book, target: pages, fields: total}}
    computed: {total: "books.map(b, b.rank).sum()"}
  Publishers:
    computed: {all: "authors.map(a, a.count).sum()", broken: "size("}
    map: {Pages: {key: page, target: books, fields: rank}}
`)
	var problems config.Problems
	if err := plan.Check(c); !errors.As(err, &problems) {
		t.Fatal(err)
	}
	text := problems.Error()
	for _, want := range []string{
		`stores.Authors.computed.label: in the expression at 1:1: the schema of the store has no property "fisrt"`,
		`stores.Authors.computed.leak: in the expression at 1:1: the schema of the store has no property "phone"`,
		`stores.Publishers.computed.broken: in the expression at 1:6: Syntax error`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// A property that some may not read makes no property that all may read, and no computation depends on itself.
func TestCheckReportsLeaksAndCyclesOfComputedProperties(t *testing.T) {
	c := newPlace(t, "").load(`stores:
  Authors:
    owner: user
    computed: {age: born + 1, leak: phone + "", deep: leak + "", hidden: phone + "", ghost: 'secret + ""'}
    fields: {phone: {read: isOwner}, hidden: {read: isOwner}}
    private: [secret]
  Books:
    unique: [isbn, "shelf, rank", codes, coauthored]
    references: {writers: {store: Authors, onDelete: clear}}
    computed: {isbn: "code + '!'", codes: "[code]", rank: "size(pages)", coauthored: "size(writers)", total: "pages.map(p, p.total).sum()", again: "total + 1"}
    map: {Pages: {key: page, target: books, fields: again}}
  Pages:
    map: {Books: {key: book, target: pages, fields: total}}
    computed: {total: "books.map(b, b.again).sum()"}
`)
	var problems config.Problems
	if err := plan.Check(c); !errors.As(err, &problems) {
		t.Fatal(err)
	}
	text := problems.Error()
	for _, want := range []string{
		`stores.Authors.computed.leak: reads "phone", which some readers of the object may not read; restrict "leak" as well: add a read rule to stores.Authors.fields`,
		`stores.Authors.computed.deep: reads "phone"`,
		`stores.Authors.computed.ghost: reads "secret"`,
		`stores.Books.unique: "codes" is computed, and an array; a unique value is a string, a number, true or false`,
		`stores.Books.unique: "rank" is computed from "pages", which workers write: if another object had the value, they could not write it`,
		`stores.Books.unique: "coauthored" is computed from "writers", which workers write: if`,
		"stores.Books.computed.again: depends on itself: Books.again reads Books.pages reads Pages.total reads " +
			"Pages.books reads Books.again",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if len(problems) != 7 {
		t.Errorf("%d problems:\n%s", len(problems), text)
	}
}

// Copies of computed properties follow what workers write.
func TestMappingsKnowWhetherTheyFollowWorkers(t *testing.T) {
	p, err := plan.Compile(newPlace(t, "").load(`stores:
  Authors:
    computed: {count: "size(books)", public: "count > 0"}
    map:
      Publishers: {key: publisher, target: authors, fields: count}
      Shelves: {key: shelf, target: authors, fields: name}
      Shops: {key: shop, target: authors, when: source.public == true}
  Books:
    map: {Authors: {key: author, target: books}}
  Publishers: {}
  Shelves: {}
  Shops: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	var follow []string
	for _, m := range p.Mappings {
		if m.FollowsWorkers {
			follow = append(follow, m.Target)
		}
	}
	if want := []string{"Publishers", "Shops"}; !slices.Equal(follow, want) {
		t.Errorf("%v follow workers, want %v", follow, want)
	}
}
