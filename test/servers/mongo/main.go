// Command mongo serves MongoDB's protocol for tests: FerretDB in one process, on SQLite, which needs nothing
// else, or on PostgreSQL.
//
// FerretDB reads documents, changes them and writes them back without a lock: of two overlapping updates of a
// document one is lost, whatever their filters. MongoDB executes an update atomically. So the clients' commands
// come through a gate, which executes those that write one at a time; reads overlap with them.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	folder := flag.String("folder", "", "where the databases are kept")
	postgres := flag.String("postgres", "", "the URL of a PostgreSQL database to keep them in instead")
	listen := flag.String("listen", "127.0.0.1:27017", "the address to listen on")
	flag.Parse()
	if err := serve(*folder, *postgres, *listen); err != nil {
		log.Fatal(err)
	}
}

// serve serves databases until it is interrupted.
func serve(folder, postgres, listen string) error {
	config := &ferretdb.Config{
		Listener: ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:  "postgresql", PostgreSQLURL: postgres,
	}
	if postgres == "" {
		var err error
		config.Handler = "sqlite"
		if config.SQLiteURL, err = sqlite(folder); err != nil {
			return err
		}
	}
	server, err := ferretdb.New(config)
	if err != nil {
		return err
	}
	behind, err := url.Parse(server.MongoDBURI())
	if err != nil {
		return err
	}
	gate, err := newGate(listen, behind.Host)
	if err != nil {
		return fmt.Errorf("the gate: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go gate.serve()
	return server.Run(ctx)
}

// sqlite returns the URL of a folder.
func sqlite(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	state := url.URL{Scheme: "file", Path: filepath.ToSlash(folder) + "/"}
	return state.String(), os.MkdirAll(folder, 0o700)
}
