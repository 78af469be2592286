package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// book is an object of 400 bytes.
const book = `{"title":"The Nine Tailors","author":"0199f3a2-1111-7b52-9d0e-3f6a1b2c4d5e",` +
	`"year":1934,"price":12.5,"tags":["mystery","bells","fenland"],"publisher":{"name":"Gollancz","city":"London"},` +
	`"summary":"Change ringing, a stolen emerald necklace, an unknown corpse in another man's grave, and the flood that drowned the fens, told as only she could."}`

// bench has the front and a minimal server on the same driver, to compare their
// rates.
type bench struct {
	*testing.B
	front, limited, bare http.Handler // limited is the front with limits that are not reached
	path                 string
}

func newBench(b *testing.B) *bench {
	b.Helper()
	backend, err := filestore.Open(b.TempDir(), filestore.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = backend.Close() })
	books, err := store.Open(b.Context(), backend, store.Options{Name: "Books"})
	if err != nil {
		b.Fatal(err)
	}
	o, err := object.Parse([]byte(book))
	if err != nil {
		b.Fatal(err)
	}
	stored, err := books.Save(b.Context(), o, "")
	if err != nil {
		b.Fatal(err)
	}
	options := api.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	apitest.Expose(&options, books, config.Expose{URL: "/books"})
	front := apitest.New(options)
	options.Limits = httpkit.NewLimits(config.RequestLimits{
		Address: config.Rates{Reads: 1 << 40}, User: config.Rates{Reads: 1 << 40}, Loopback: true,
	}, nil, prometheus.NewRegistry())
	return &bench{b, front, apitest.New(options), bare(books.Driver()), "/books/" + stored.UUID}
}

// bare is a minimal HTTP server that stores objects.
func bare(d driver.Store) http.Handler {
	e := echo.New()
	e.GET("/books/:uuid", func(c echo.Context) error {
		record, found, err := d.Get(c.Request().Context(), c.Param("uuid"))
		if err != nil || !found {
			return echo.ErrNotFound
		}
		return c.JSONBlob(http.StatusOK, record.Body)
	})
	e.POST("/books", func(c echo.Context) error {
		var o map[string]any
		if err := json.NewDecoder(c.Request().Body).Decode(&o); err != nil {
			return err
		}
		body, err := json.Marshal(o)
		if err != nil {
			return err
		}
		uuid := object.NewUUID()
		if err := d.Put(c.Request().Context(), driver.Write{UUID: uuid, Revision: 1, Body: body}); err != nil {
			return err
		}
		return c.JSONBlob(http.StatusCreated, body)
	})
	return e
}

func BenchmarkGet(b *testing.B) {
	n := newBench(b)
	b.Run("handler/bare", func(b *testing.B) { inMemory(b, n.bare, n.path) })
	b.Run("handler/front", func(b *testing.B) { inMemory(b, n.front, n.path) })
	b.Run("handler/limited", func(b *testing.B) { inMemory(b, n.limited, n.path) })
	request := "GET " + n.path + " HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\n\r\n"
	b.Run("tcp/bare", func(b *testing.B) { overTCP(b, n.bare, request, http.StatusOK) })
	b.Run("tcp/front", func(b *testing.B) { overTCP(b, n.front, request, http.StatusOK) })
	b.Run("tcp/limited", func(b *testing.B) { overTCP(b, n.limited, request, http.StatusOK) })
}

func BenchmarkCreate(b *testing.B) {
	n := newBench(b)
	request := "POST /books HTTP/1.1\r\nHost: x\r\nUser-Agent: bench\r\nContent-Type: " +
		"application/json\r\nContent-Length: " +
		strconv.Itoa(len(book)) + "\r\n\r\n" + book
	b.Run("tcp/bare", func(b *testing.B) { overTCP(b, n.bare, request, http.StatusCreated) })
	b.Run("tcp/front", func(b *testing.B) { overTCP(b, n.front, request, http.StatusCreated) })
}

// discard is a ResponseWriter that discards the reply.
type discard struct{ header http.Header }

func (d discard) Header() http.Header            { return d.header }
func (d discard) Write(data []byte) (int, error) { return len(data), nil }
func (d discard) WriteHeader(int)                {}

// inMemory measures the handler alone, without net/http.
func inMemory(b *testing.B, h http.Handler, path string) {
	b.Helper()
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	w := discard{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// overTCP measures 64 connections that are kept alive. The client writes bytes
// and reads them, so that most of the time is the server's.
func overTCP(b *testing.B, h http.Handler, request string, status int) {
	b.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		in := bufio.NewReader(conn)
		for pb.Next() {
			if _, err := io.WriteString(conn, request); err != nil {
				b.Error(err)
				return
			}
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != status {
				b.Errorf("status %d", resp.StatusCode)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}
