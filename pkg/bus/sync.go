package bus

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"belfry/pkg/errs"
)

// Sync returns once everything that Publish has accepted before is on disk.
//
// A cluster's acknowledgement is as durable as the cluster is configured to
// make it (see nats.conf), so there is nothing to wait for. The embedded
// server's says that the event has been given to the operating system, which
// outlives this process but not a power cut. Syncing every message there would
// cost a disk access each; this syncs the stream's files once for all that
// came before. A server whose file says sync_interval: always needs none of it.
func (b *Bus) Sync(context.Context) error {
	if b.embedded == nil {
		return nil
	}
	r := b.embedded.last.Load()
	if r == nil || r.synced {
		return nil
	}
	return b.syncer.syncServer(r.folder)
}

// syncer remembers which of the server's files it has synced as they are.
type syncer struct {
	mu   sync.Mutex
	seen map[string]fileState
}

type fileState struct {
	size    int64
	changed time.Time
}

// syncServer syncs the streams of a server.
func (s *syncer) syncServer(folder string) error {
	accounts, err := streamsFolders(folder)
	for _, streams := range accounts {
		err = errors.Join(err, s.sync(streams))
	}
	return errs.Wrap(err, errs.Unavailable, "the embedded bus's files can't be synced")
}

func (s *syncer) sync(folder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range []string{StreamEvents, StreamDead, StreamRetry} {
		err := s.syncBlocks(filepath.Join(folder, stream, "msgs"))
		if errors.Is(err, fs.ErrNotExist) && stream != StreamEvents {
			continue // it has not been made yet
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// syncBlocks syncs the blocks of messages that have changed, and their folder
// when it has other files than before.
func (s *syncer) syncBlocks(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	seen := make(map[string]fileState, len(s.seen))
	appeared := false
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".blk") {
			continue
		}
		path := filepath.Join(folder, e.Name())
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // its messages have expired
		}
		if err != nil {
			return err
		}
		now := fileState{info.Size(), info.ModTime()}
		before, known := s.seen[path]
		appeared = appeared || !known
		if !known || before != now {
			if err := syncFile(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		seen[path] = now
	}
	if appeared {
		if err := syncFile(folder); err != nil {
			return err
		}
	}
	s.keep(folder, seen)
	return nil
}

// keep replaces what is known of a folder's files.
func (s *syncer) keep(folder string, seen map[string]fileState) {
	if s.seen == nil {
		s.seen = map[string]fileState{}
	}
	for path := range s.seen {
		if filepath.Dir(path) == folder {
			delete(s.seen, path)
		}
	}
	for path, state := range seen {
		s.seen[path] = state
	}
}

// syncFile has the operating system write out a file or a folder, by whichever
// descriptor it was written.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
