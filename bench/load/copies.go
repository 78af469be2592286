package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"belfry/test/backing"
)

// The load of the part copies.
const (
	copyLeast   = 1_000  // children that name one object; ten times as many each time
	copyCreates = 20_000 // with which the rate of changed copies is compared
	copyShare   = 0.5    // of that rate, at least
	copyLagged  = 2.0    // times the lag of other events beside it, at most
	copyMost    = 4 * time.Minute
	copyBeside  = 100_000 // children from which on it lasts long enough to measure something beside it

	besideCopies     = 50 // updates a second whose entries are awaited beside copies
	besideCopiesTurn = 5 * time.Second
)

const copyStores = serving + `  Authors: {expose: {}}
  Books:
    expose: {}
    references: {author: Authors}
    copies: {authorName: author.name}
  Parents: {expose: {}}
  Children:
    expose: {}
    map:
      Parents: {key: parent, target: children, fields: "title, year", cascade: true}
  Recipes: {expose: {}}
  Ratings:
    expose: {}
    map:
      Recipes: {key: recipe, aggregates: {ratings: count(), stars: sum(stars), best: max(stars), last: max(created)}}
`

// copied is a load of the part copies on a backend.
type copied struct {
	backend string // with a place for the name of what it holds; "": files
	most    int    // children that name one object
	creates int    // with whose rate that of changed copies is compared
	ratings int    // a second
	pause   time.Duration
}

// copies measures what a change of an object costs that many others copy, and what a rating costs of an object that
// has many.
func (b *bench) copies(ctx context.Context, most int) error {
	if err := b.copiesOf(ctx, copied{"", most, copyCreates, ratedRate, 50 * time.Millisecond}); err != nil {
		return err
	}
	if err := setCredentials(); err != nil {
		return err
	}
	return backing.WithHost(ctx, func(h *backing.Host) error {
		mongo := strings.ReplaceAll(mongoDatabase(h).url, "%", "%%")
		for _, backend := range []string{
			"{type: mongodb, url: '" + mongo + "', database: belfry-load-%s}",
			"{type: dynamodb, region: eu-central-1, endpoint: '" + backing.Dynoxide(h).URL + "', tablePrefix: %s_}",
		} {
			fmt.Println(strings.Split(backend, ",")[0][1:])
			if err := b.copiesOf(ctx, copied{backend, copyLeast, copyLeast, ratedElsewhere, metricsPause}); err != nil {
				return fmt.Errorf("%s: %w", backend, err)
			}
		}
		return nil
	})
}

func (b *bench) copiesOf(ctx context.Context, o copied) error {
	return errors.Join(
		b.withCopies(ctx, o, "copies", func(ctx context.Context, s *server) error { return b.spread(ctx, s, o) }),
		b.withCopies(ctx, o, "ratings", func(ctx context.Context, s *server) error { return b.rated(ctx, s, o) }))
}

// withCopies starts belfry, and verifies all it keeps after what was measured.
func (b *bench) withCopies(
	ctx context.Context, o copied, name string, measure func(ctx context.Context, s *server) error,
) error {
	text := copyStores
	if o.backend != "" {
		text += "backends: {default: " + fmt.Sprintf(o.backend, name) + "}\n"
	}
	s, err := b.serveWith(ctx, text)
	if err != nil {
		return err
	}
	s.pause = o.pause
	if err = errors.Join(measure(ctx, s), s.stop()); err != nil {
		return err
	}
	began := time.Now()
	if out, err := exec.CommandContext(ctx, b.belfry, "verify", "--config",
		filepath.Join(filepath.Dir(s.data), "belfry.yaml")).CombinedOutput(); err != nil {
		return fmt.Errorf("belfry verify: %w: %s", err, out)
	}
	fmt.Printf("  belfry verify, after %s: everything is what its objects say\n", short(time.Since(began)))
	return nil
}

// spread measures how fast a new name of an author reaches the books, for several numbers of books.
func (b *bench) spread(ctx context.Context, s *server, o copied) error {
	small := &arrayed{run: "s", parents: 10, entries: 100, bytes: smallEntry}
	if err := small.fill(ctx, s); err != nil {
		return err
	}
	if err := authorOf(s, "a-creates"); err != nil {
		return err
	}
	made, err := timed(func() (result, error) {
		r, err := closedLoop(s.base, connections, o.creates, func(c *client, i int) error {
			return expect(c, 201, "POST", "/books", object(fmt.Sprintf("n-%08d", i), `"author":"a-creates",`))
		})
		if err == nil {
			err = published(s, 0)
		}
		return r, err
	})
	if err != nil {
		return err
	}
	fmt.Printf("copies: books with a copy of their author's name are created at %.0f/s over %d connections\n",
		made.rate(), connections)
	for total := copyLeast; total <= max(o.most, copyLeast); total *= 10 {
		if err := b.spreadTo(ctx, s, total, made.rate(), small); err != nil {
			return fmt.Errorf("%d books: %w", total, err)
		}
	}
	return nil
}

func authorOf(s *server, uuid string) error {
	_, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
		return expect(c, 201, "POST", "/authors", fmt.Appendf(nil, `{"uuid":%q,"name":"Ada"}`, uuid))
	})
	return err
}

// spreadTo changes the name of the author of this many books.
func (b *bench) spreadTo(ctx context.Context, s *server, total int, creates float64, small *arrayed) error {
	author := fmt.Sprintf("a-%d", total)
	if err := authorOf(s, author); err != nil {
		return err
	}
	book := func(i int) string { return fmt.Sprintf("b%d-%08d", total, i) }
	for from := 0; from < total; from += queryStream {
		to := min(from+queryStream, total)
		lines := linesOf(from, to, func(i int) []byte { return object(book(i), fmt.Sprintf(`"author":%q,`, author)) })
		if err := createLines(ctx, s.base+"/books", lines, to-from); err != nil {
			return err
		}
		if err := handled(s, "copy"); err != nil {
			return err
		}
	}
	var took time.Duration
	var alone, beside paced
	if total >= copyBeside {
		var err error
		if alone, err = atRate(s.base, besideCopies, besideCopiesTurn, waiting(small.next)); err != nil {
			return err
		}
	}
	if err := b.profiled(ctx, s, fmt.Sprintf("copies-%d", total), profileSeconds, func() error {
		began := time.Now()
		if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
			return expect(c, 200, "PUT", "/authors/"+author, []byte(`{"name":"Augusta"}`))
		}); err != nil {
			return err
		}
		var err error
		if total >= copyBeside {
			beside, err = atRate(s.base, besideCopies, besideCopiesTurn, waiting(small.next))
		}
		if err == nil {
			err = named(s, book(total-1))
		}
		if err == nil {
			err = published(s, 0)
		}
		took = time.Since(began)
		return err
	}); err != nil {
		return err
	}
	rate := float64(total) / took.Seconds()
	fmt.Printf("  %d books have the new name, their events published, after %s: %.0f/s, %.2f times the rate of "+
		"creates (goal %.1f): %s",
		total, short(took), rate, rate/creates, copyShare, verdict(rate/creates >= copyShare))
	if total >= 1_000_000 {
		fmt.Printf("; within %s: %s", copyMost, verdict(took <= copyMost))
	}
	fmt.Println()
	if total >= copyBeside {
		times := beside.percentile(0.5).Seconds() / alone.percentile(0.5).Seconds()
		fmt.Printf("    an entry of another store, at %d updates/s: p50 %s, p99 %s; without copies p50 %s, p99 %s: "+
			"%.1f times (goal %.0f): %s\n",
			besideCopies, short(beside.percentile(0.5)), short(beside.percentile(0.99)),
			short(alone.percentile(0.5)), short(alone.percentile(0.99)), times, copyLagged,
			verdict(times <= copyLagged))
	}
	return handled(s, "copy")
}

// named waits until a book has the new name of its author, for a quarter of an hour at most. A backend with a single
// connection can be busy for longer than a request waits.
func named(s *server, book string) error {
	for began := time.Now(); time.Since(began) < 15*time.Minute; {
		has := false
		if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
			status, err := c.do("GET", "/books/"+book, nil)
			has = bytes.Contains(c.body, []byte(`"authorName":"Augusta"`))
			if err == nil && status != 200 && status != 503 {
				err = fmt.Errorf("the book %s has the status %d: %s", book, status, c.body)
			}
			return err
		}); err != nil || has {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("%s has not the new name of its author", book)
}

// handled waits until a listener has handled the events of all writes.
func handled(s *server, listener string) error {
	if err := published(s, 0); err != nil {
		return err
	}
	return pollUntil(s, metricsPath, func(body []byte) bool {
		return bytes.Contains(body, fmt.Appendf(nil, "belfry_listener_pending{listener=%q} 0\n", listener))
	})
}
