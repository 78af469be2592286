// Command mongo serves MongoDB's protocol for tests: FerretDB on SQLite, in
// one process that needs nothing else.
package main

import (
	"context"
	"flag"
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
	listen := flag.String("listen", "127.0.0.1:27017", "the address to listen on")
	flag.Parse()
	if err := serve(*folder, *listen); err != nil {
		log.Fatal(err)
	}
}

// serve serves the databases of a folder until it is interrupted.
func serve(folder, listen string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	state := url.URL{Scheme: "file", Path: filepath.ToSlash(folder) + "/"}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: listen},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:   "sqlite",
		SQLiteURL: state.String(),
	})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	return server.Run(ctx)
}
