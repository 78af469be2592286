package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

const (
	checkInterval   = time.Second // between checks of the streams
	restartMax      = time.Minute // between two restarts of a server that keeps failing
	restartCapacity = 1 << 20     // bytes that the folder must take before a restart
)

// Supervise implements bus.Server. A stream that once failed to write, because
// the disk was full for instance, accepts nothing more, even when the disk has
// space again: only a restart of the server opens it. Supervise restarts the
// server as soon as its folder can be written. Events that could not be
// published stay in their records meanwhile.
func (s *Server) Supervise(ctx context.Context, restart func(context.Context) error) {
	var restarted time.Time
	pause := checkInterval // until the next restart is allowed
	for backoff.Sleep(ctx, checkInterval) == nil {
		folder, writeErr := s.checkStreams()
		if writeErr == nil {
			if s.writeErr.Swap(nil) != nil {
				s.log.Info("the embedded bus can be written again")
			}
			if time.Since(restarted) > restartMax {
				pause = checkInterval
			}
			continue
		}
		if s.writeErr.Swap(&writeErr) == nil {
			s.log.Error("the embedded bus can't be written; it restarts once its folder can be", "folder", folder,
				"error", writeErr)
		}
		if time.Since(restarted) < pause || !writable(folder) {
			continue
		}
		restarted, pause = time.Now(), min(2*pause, restartMax)
		if s.restart(ctx, restart) != nil {
			return
		}
	}
}

// restart retries until the server runs. It returns ctx's error.
func (s *Server) restart(ctx context.Context, restart func(context.Context) error) error {
	for retry := backoff.New(checkInterval, restartMax); ; {
		err := restart(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		wait := retry.Next()
		s.log.Error("the embedded bus can't be restarted; retrying", "error", err, "in", wait)
		if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// WriteError implements bus.Server.
func (s *Server) WriteError() error {
	if err := s.writeErr.Load(); err != nil {
		return errs.Wrap(*err, errs.Unavailable, "the embedded bus can't be written: is its disk full?")
	}
	return nil
}

// checkStreams returns the data folder and the write error of a stream, nil
// when no stream has one or the server does not run.
func (s *Server) checkStreams() (folder string, err error) {
	i := s.current.Load()
	if i == nil {
		return "", nil
	}
	for _, e := range i.server.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return filepath.Dir(i.folder), errors.New(e.Error)
		}
	}
	return "", nil
}

// writable reports whether a folder takes a file of restartCapacity.
func writable(folder string) bool {
	f, err := os.CreateTemp(folder, "room-")
	if err != nil {
		return false
	}
	_, err = f.Write(make([]byte, restartCapacity))
	return errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name())) == nil
}
