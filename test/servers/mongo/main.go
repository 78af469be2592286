// Command mongo serves MongoDB's protocol for tests: FerretDB on SQLite, in
// one process that needs nothing else. Commands are executed one at a time, so that each is atomic.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"log/slog"
	"net"
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
	if err := os.Chdir(folder); err != nil { // the path of a socket must be short
		return err
	}
	front := &atomic{socket: "socket"}
	if err := os.Remove(front.socket); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return err
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{Unix: front.socket},
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Handler:   "sqlite",
		SQLiteURL: state.String(),
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		defer stop()
		if err := front.serve(ctx, l); ctx.Err() == nil {
			log.Print(err)
		}
	}()
	return server.Run(ctx)
}
