package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/internal/count"
)

// The data of the part grid: books of a schema, with indexes, references and a mapping, and files in one of them.
const (
	gridPerAuthor = 100
	gridPerShelf  = 100 // of the books that are on one
	gridShelved   = 20  // books of which one is on a shelf
	gridUpdates   = 500 // of one book
	gridPicture   = 200 << 10

	gridStores = `  Authors:
    expose: {list: true}
    title: name
    indexes: [name]
  Shelves: {expose: {list: true}}
  Books:
    expose: {list: true}
    title: title
    schema: book.json
    indexes: [title, year, "author, year", "-price", published]
    references: {author: {store: Authors, onDelete: clear}}
    map: {Shelves: {key: shelf, target: books, fields: "title, year"}}
authentication:
  limits: {address: 0, account: 0}
  providers:
    email: {postValidation: true, skipEmailValidation: true}
binaries:
  files: {expose: {}, map: {Books: [covers]}}
console: {edit: true}
`
	gridConfiguration = serving + gridStores

	gridSchema = `{"type": "object", "required": ["title", "author"], "properties": {
"title": {"type": "string", "maxLength": 300}, "author": {"type": "string"},
"shelf": {"type": "string"}, "year": {"type": "integer"},
"price": {"type": "number"}, "pages": {"type": "integer"}, "inStock": {"type": "boolean"},
"published": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}, "note": {"type": "string"}}}`
)

// grids measures the views of the console where a store has many objects, for an admin who is logged in.
func grids(ctx context.Context, b *bench, total int) error {
	if total == 0 {
		return nil
	}
	home, err := os.MkdirTemp(b.folder, "grid-")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, "book.json"), []byte(gridSchema), 0o600); err != nil {
		return err
	}
	if err := servedGrid(ctx, b, home, gridConfiguration, total, func(g *grid) error {
		if err := fillGrid(ctx, b, g); err != nil {
			return err
		}
		if err := g.logIn(ctx); err != nil {
			return err
		}
		return b.profiled(ctx, g.server, "grid", profileSeconds, g.measure)
	}); err != nil {
		return err
	}
	// In development, lists without an index read what they may.
	return servedGrid(ctx, b, home, "development: true\n"+gridConfiguration, total, func(g *grid) error {
		fmt.Printf("grid in development: ready %s after the start\n", short(g.ready))
		if err := g.logIn(ctx); err != nil {
			return err
		}
		return g.measureEach(g.unindexed(400))
	})
}

// servedGrid serves a folder while it is measured.
func servedGrid(ctx context.Context, b *bench, home, configuration string, total int,
	measured func(*grid) error) (err error) {
	s, err := b.serveIn(ctx, home, configuration)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	g := &grid{server: s, total: total}
	defer func() {
		if g.client != nil {
			g.client.close()
		}
	}()
	return measured(g)
}

// grid is a belfry with many objects in a store, and an admin.
type grid struct {
	*server
	client *client // of the admin; nil before logIn
	total  int
}

func (g *grid) authors() int { return max(1, g.total/gridPerAuthor) }

func (g *grid) shelves() int { return max(1, g.total/gridShelved/gridPerShelf) }

func gridAuthor(n int) string { return fmt.Sprintf("a-%06d", n) }

func gridShelf(n int) string { return fmt.Sprintf("s-%05d", n) }

func gridBook(n int) string { return fmt.Sprintf("b-%08d", n) }

// updated is the book with the long history and the files, in the middle of the store and of the log.
func (g *grid) updated() string { return gridBook(g.total / 2) }

// logIn begins a session of the admin, whose login is recent: the forms of the model need that.
func (g *grid) logIn(ctx context.Context) (err error) {
	if g.client, err = dial(g.base); err != nil {
		return err
	}
	g.client.header, err = session(ctx, g.server, credentials(0)+"}")
	return err
}

// fillGrid makes the objects by streams, as an import does.
func fillGrid(ctx context.Context, b *bench, g *grid) error {
	if _, err := register(ctx, g.server, 0); err != nil {
		return err
	}
	if err := b.command(ctx, g.server, "user", "admin", "user0@example.com"); err != nil {
		return err
	}
	g.pause = 100 * time.Millisecond
	began := time.Now()
	titles := newWords(7)
	for _, fill := range []struct {
		path  string
		total int
		line  func(i int) []byte
	}{
		{"/authors", g.authors(), func(i int) []byte {
			return fmt.Appendf(nil, `{"uuid":%q,"name":%q}`, gridAuthor(i), word(uint64(i))+" "+word(uint64(7*i)))
		}},
		{"/shelves", g.shelves(), func(i int) []byte { return fmt.Appendf(nil, `{"uuid":%q}`, gridShelf(i)) }},
		{"/books", g.total, func(i int) []byte {
			shelf := ""
			if i%gridShelved == 0 {
				shelf = fmt.Sprintf(`"shelf":%q,`, gridShelf(i/gridShelved/gridPerShelf))
			}
			return fmt.Appendf(nil, `{"uuid":%q,"title":%q,"author":%q,%s"year":%d,"price":%d.5,"pages":%d,`+
				`"inStock":%t,"published":"%d-%02d-%02d","tags":["bronze","tower"],"note":%q}`, gridBook(i),
				titles.text(4), gridAuthor(i/gridPerAuthor), shelf, 1500+i%521, i%10_007, i%999, i%3 == 0, 1900+i%126,
				1+i%12, 1+i%28, strings.Repeat("x", 180))
		}},
	} {
		for from := 0; from < fill.total; from += queryStream {
			to := min(from+queryStream, fill.total)
			if err := createLines(ctx, g.base+fill.path, linesOf(from, to, fill.line), to-from); err != nil {
				return err
			}
			if err := mapped(g.server); err != nil {
				return err
			}
			if from <= g.total/2 && g.total/2 < to && fill.path == "/books" {
				if err := g.update(); err != nil {
					return err
				}
			}
		}
	}
	fmt.Printf("grid: %d objects of about 400 bytes with five indexes, references, and entries in %d arrays, filled "+
		"in %s (%.0f/s), resident %d MB\n", g.total, g.shelves(), short(time.Since(began)),
		float64(g.total)/time.Since(began).Seconds(), g.resident()>>20)
	return nil
}

// update gives one book a long history and files.
func (g *grid) update() error {
	if _, err := closedLoop(g.base, 1, gridUpdates, func(c *client, i int) error {
		return expect(c, 200, "PATCH", "/books/"+g.updated(), fmt.Appendf(nil, `{"pages":%d}`, i))
	}); err != nil {
		return err
	}
	// The beginning of a GIF, and bytes that no decoder reads.
	picture := slices.Concat([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"), make([]byte, gridPicture))
	_, err := closedLoop(g.base, 1, 2, func(c *client, i int) error {
		c.header = "Content-Type: image/gif\r\n"
		return expect(c, 201, "PUT", fmt.Sprintf("/binary/upload/Books/%s/covers/add", g.updated()), picture)
	})
	return err
}

func (g *grid) measure() error {
	views, err := g.views()
	if err != nil {
		return err
	}
	return g.measureEach(views)
}

func (g *grid) measureEach(views []measuredView) error {
	var failed []error
	for _, v := range views {
		if err := v.send(g.client); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", v.name, err))
		}
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	missed := 0
	for _, v := range views {
		reached, err := g.measureView(g.client, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		if !reached {
			missed++
		}
	}
	fmt.Printf("  %s of the grid, %d above %s\n", count.Of(len(views), "view"), missed, short(consoleGoal))
	return nil
}
