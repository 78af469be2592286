package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The load of the queries.
const (
	queryConns  = 8
	querySmall  = 10_000 // books of the store whose latencies those of many are compared with
	queryPage   = 30
	queryStream = 50_000 // lines
	queryRounds = 5
	perAuthor   = 100 // books
	vocabulary  = 20_000
	bodyWords   = 30
	growthGoal  = 1.5

	indexPatience = 10 // times two minutes, until the words are indexed
)

const bookStores = serving + `  Books:
    expose: {list: true}
    indexes: ["author, year", year]
    search: {fields: [title, body]}
`

// words makes up texts in which words are as often as in those of people: the number n is there about 1/n as often as
// the first.
type words struct{ often *rand.Zipf }

func newWords(seed uint64) words {
	return words{rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), 1.01, 1, vocabulary-1)}
}

// word is that of a number, of three syllables.
func word(n uint64) string {
	const first, second = "bdfghklmnprstvwz", "aeiou"
	var b strings.Builder
	for range 3 {
		b.WriteByte(first[n%uint64(len(first))])
		n /= uint64(len(first))
		b.WriteByte(second[n%uint64(len(second))])
		n /= uint64(len(second))
	}
	return b.String()
}

func (w words) text(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = word(w.often.Uint64())
	}
	return strings.Join(all, " ")
}

// books returns objects, one a line, in parts that fit into a stream.
func books(total int) (parts []io.Reader) {
	for from := 0; from < total; from += queryStream {
		parts = append(parts, booksFrom(from, min(from+queryStream, total), total))
	}
	return parts
}

func booksFrom(from, to, total int) io.Reader {
	w := newWords(uint64(from))
	return linesOf(from, to, func(i int) []byte {
		return fmt.Appendf(nil, `{"title":%q,"author":%q,"year":%d,"body":%q}`, w.text(4),
			author(i%max(1, total/perAuthor)), 1500+i%521, w.text(bodyWords))
	})
}

func author(n int) string { return fmt.Sprintf("author-%06d", n) }

// query is a list, as each of both servers is asked for it.
type query struct {
	name   string
	goal   float64 // belfry's rate beside that of PocketBase
	belfry func(authors int) string
	other  func(authors int) string
	found  func(body []byte) error // nil: a page has objects
}

const (
	ofBelfry     = "/books?"
	ofPocketBase = "/api/collections/books/records?"
)

func values(pairs ...string) string {
	v := url.Values{}
	for pair := range slices.Chunk(pairs, 2) {
		v.Set(pair[0], pair[1])
	}
	return v.Encode()
}

var queries = []query{
	{
		"list of 30 by an index", 3,
		func(n int) string {
			return values("filter", fmt.Sprintf("author == %q", author(rand.IntN(n))), "sort", "year", "limit",
				strconv.Itoa(queryPage))
		},
		func(n int) string {
			return values("filter", fmt.Sprintf("author = %q", author(rand.IntN(n))), "sort", "year", "perPage",
				strconv.Itoa(queryPage), "skipTotal", "1")
		}, nil,
	},
	{
		"list of 30 of a union of two", 2,
		func(n int) string {
			return values("filter",
				fmt.Sprintf("author == %q || author == %q", author(rand.IntN(n)), author(rand.IntN(n))), "sort", "year",
				"limit", strconv.Itoa(queryPage))
		},
		func(n int) string {
			return values("filter",
				fmt.Sprintf("author = %q || author = %q", author(rand.IntN(n)), author(rand.IntN(n))), "sort", "year",
				"perPage", strconv.Itoa(queryPage), "skipTotal", "1")
		}, nil,
	},
	{
		"30 that have a word, q beside ~", 1,
		func(int) string { return values("q", someWord(), "limit", strconv.Itoa(queryPage)) },
		func(int) string {
			w := someWord()
			return values("filter", fmt.Sprintf("title ~ %q || body ~ %q", w, w), "perPage", strconv.Itoa(queryPage),
				"skipTotal", "1")
		}, nil,
	},
	{
		"count by an index", 1,
		func(n int) string {
			return values("filter", fmt.Sprintf("author == %q", author(rand.IntN(n))), "limit", "1", "count", "exact")
		},
		func(n int) string {
			return values("filter", fmt.Sprintf("author = %q", author(rand.IntN(n))), "perPage", "1")
		},
		func(body []byte) error {
			var page struct {
				Count      struct{ Value int }
				TotalItems int
			}
			if err := json.Unmarshal(body, &page); err != nil || max(page.Count.Value, page.TotalItems) != perAuthor {
				return fmt.Errorf("%d and %d were counted, not %d: %w", page.Count.Value, page.TotalItems, perAuthor,
					err)
			}
			return nil
		},
	},
}

// someWord is one that neither most nor hardly any books have.
func someWord() string { return word(uint64(100 + rand.IntN(vocabulary/4))) }

// queryRates measures lists beside those of PocketBase with the same objects and indexes, in turn, and beside those of
// a belfry with fewer objects.
func (b *bench) queryRates(ctx context.Context, million int) (err error) {
	if million == 0 {
		return nil
	}
	var belfries [2]*server // few objects, many
	for i, total := range []int{querySmall, million} {
		if belfries[i], err = b.serveBooks(ctx, total); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, belfries[i].stop()) }()
	}
	other, err := b.servePocketBase(ctx, million)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.stop()) }()
	fmt.Printf("%d objects of %d words; belfry %d MB, PocketBase %d MB of memory\n", million, 4+bodyWords,
		belfries[1].resident()>>20, other.resident()>>20)
	for _, q := range queries {
		compared := &comparison{name: q.name, names: [2]string{"PocketB", "belfry"}, goal: q.goal}
		grown := &comparison{name: fmt.Sprintf("%s: of %d objects beside %d", q.name, million, querySmall),
			names: [2]string{"few", "many"}}
		requests, err := enough(other, q, million)
		if err != nil {
			return err
		}
		for range queryRounds {
			if err := compared.measure([2]*server{other, belfries[1]},
				func(s *server) (result, error) { return q.measure(s, million, requests) }); err != nil {
				return err
			}
			if err := grown.measure(belfries, func(s *server) (result, error) {
				total := million
				if s == belfries[0] {
					total = querySmall
				}
				return q.measure(s, total, 4*requests)
			}); err != nil {
				return err
			}
		}
		compared.print()
		grown.print()
		few, many := percentile(grown.of[0].latencies, 0.99), percentile(grown.of[1].latencies, 0.99)
		growth := float64(many) / float64(few)
		fmt.Printf("  p99     %.2f times as long (goal %.1f): %s\n", growth, growthGoal, verdict(growth <= growthGoal))
	}
	return nil
}

// enough returns how many requests take about two seconds.
func enough(s *server, q query, total int) (int, error) {
	for n := 20; ; n *= 4 {
		r, err := q.measure(s, total, n)
		if err != nil || r.took > time.Second || n > 10_000 {
			return n, err
		}
	}
}

func (q query) measure(s *server, total, requests int) (result, error) {
	authors := total / perAuthor
	return closedLoop(s.base, queryConns, requests, func(c *client, _ int) error {
		path := ofPocketBase
		if s.name == "belfry" {
			path = ofBelfry + q.belfry(authors)
		} else {
			path += q.other(authors)
		}
		if err := expect(c, 200, "GET", path, nil); err != nil {
			return err
		}
		if q.found != nil {
			return q.found(c.body)
		}
		if !bytes.Contains(c.body, []byte(`"title":`)) && !strings.Contains(path, "q=") &&
			!strings.Contains(path, "~") {
			return fmt.Errorf("%s has no objects: %s", path, c.body)
		}
		return nil
	})
}

// serveBooks starts belfry with this many objects, which it has indexed.
func (b *bench) serveBooks(ctx context.Context, total int) (*server, error) {
	s, err := b.serveWith(ctx, bookStores)
	if err != nil {
		return nil, err
	}
	for i, part := range books(total) {
		if err := createLines(ctx, s.base+"/books", part, min(queryStream, total-i*queryStream)); err != nil {
			return nil, errors.Join(err, s.stop())
		}
	}
	s.pause = time.Second
	indexed := func() error {
		return pollUntil(s, metricsPath, func(body []byte) bool {
			return bytes.Contains(body, []byte("\nbelfry_search_behind{store=\"Books\"} 0\n")) &&
				bytes.Contains(body, fmt.Appendf(nil, "\nbelfry_search_objects{store=\"Books\"} %v\n", float64(total)))
		})
	}
	for range indexPatience {
		if err = indexed(); err == nil {
			return s, nil
		}
	}
	return nil, errors.Join(err, s.stop())
}

// servePocketBase builds and starts PocketBase with the same objects.
func (b *bench) servePocketBase(ctx context.Context, total int) (*server, error) {
	program, err := build(ctx, filepath.Join("..", "test", "servers", "pocketbase"), b.folder, "pocketbase", ".")
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp(b.folder, "pocketbase-")
	if err != nil {
		return nil, err
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	program, args := b.within(program, address, home)
	return startWith(ctx, peerPocketBase, io.MultiReader(books(total)...), program, args...)
}
