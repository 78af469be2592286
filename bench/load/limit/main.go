// Command limit is what belfry is compared with: echo, JSON decoding and
// Pebble with synced writes, files with their hashes, synced, the hash of a
// password, and nothing else. It shows what any server built on these reaches on
// the machine.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"golang.org/x/crypto/argon2"

	"belfry/internal/memory"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves with belfry's budget of memory and the cache of the same size, so that both collect as often.
func run(address, folder string) error {
	budget := memory.Of()
	memory.Tune(budget)
	db, err := pebble.Open(folder, &pebble.Options{CacheSize: budget.Cache, MemTableSize: uint64(budget.MemTable)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	e := echo.New()
	e.GET("/readyz", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	e.GET("/hello", func(c echo.Context) error { return c.String(http.StatusOK, "Hello, World!") })
	e.POST("/items", func(c echo.Context) error { return create(c, db) })
	e.POST("/hash", hash)
	e.GET("/items/:uuid", func(c echo.Context) error { return get(c, db) })
	if err := serveFiles(e, filepath.Join(folder, "files")); err != nil {
		return err
	}
	return http.Serve(listener, e)
}

func create(c echo.Context, db *pebble.DB) error {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	var object struct{ UUID string }
	if err := json.Unmarshal(body, &object); err != nil {
		return c.NoContent(http.StatusBadRequest)
	}
	id := object.UUID
	if id == "" {
		v7, err := uuid.NewV7()
		if err != nil {
			return err
		}
		id = v7.String()
	}
	if err := db.Set([]byte(id), body, pebble.Sync); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusCreated, body)
}

func get(c echo.Context, db *pebble.DB) error {
	value, closer, err := db.Get([]byte(c.Param("uuid")))
	if errors.Is(err, pebble.ErrNotFound) {
		return c.NoContent(http.StatusNotFound)
	}
	if err != nil {
		return err
	}
	err = c.JSONBlob(http.StatusOK, value)
	return errors.Join(err, closer.Close())
}

// turns limits concurrent hashes to the number of cores.
var turns = make(chan struct{}, runtime.GOMAXPROCS(0))

// hash computes the password hash that belfry computes.
func hash(c echo.Context) error {
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	turns <- struct{}{}
	defer func() { <-turns }()
	argon2.IDKey(body, make([]byte, 16), 2, 19<<10, 1, 32)
	return c.NoContent(http.StatusNoContent)
}
