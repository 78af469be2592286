package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// Sync implements bus.Server. Syncing every message would cost a disk access
// each; Sync writes the streams' files to disk once for everything acknowledged
// before. A server whose configuration file says sync_interval: always needs no
// Sync.
func (s *Server) Sync(context.Context) error {
	i := s.last.Load()
	if i == nil || i.synced {
		return nil
	}
	return s.syncer.syncServer(i.folder)
}

// Files are the files of a server that runs in another process of this machine.
type Files struct {
	folder string // of the accounts' streams; "" when the server syncs by itself
	syncer syncer
}

// OpenFiles returns the files of a server with these options, for
// bus.Options.Syncer. It reports errs.Invalid for a configuration file that
// can't be used.
func OpenFiles(opts Options) (*Files, error) {
	o, _, err := opts.serverOptions()
	if err != nil {
		return nil, err
	}
	if o.SyncAlways {
		return &Files{}, nil
	}
	return &Files{folder: storeFolder(o)}, nil
}

// Sync implements bus.Syncer.
func (f *Files) Sync(context.Context) error {
	if f.folder == "" {
		return nil
	}
	return f.syncer.syncServer(f.folder)
}

// syncer syncs the files that changed since its last sync.
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
	for _, stream := range []string{bus.StreamEvents, bus.StreamDead, bus.StreamRetry} {
		err := s.syncBlocks(filepath.Join(folder, stream, "msgs"))
		if errors.Is(err, fs.ErrNotExist) && stream != bus.StreamEvents {
			continue // it is not created yet
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

// keep replaces the recorded states of a folder's files.
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

// syncFile syncs a file or a folder. A sync covers data that was written through any
// other descriptor.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
