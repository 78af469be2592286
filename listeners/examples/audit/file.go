package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/gofrs/flock"

	"belfry/pkg/listener"
)

// remembered is the number of recent events that are deduplicated at least. After
// a crash a few hundred are redelivered.
const remembered = 1 << 16

// log is the file. One process writes it at a time.
type log struct {
	lock *flock.Flock

	mu            sync.Mutex // retries of dead letters are handled concurrently
	file          *os.File
	size          int64 // of the data that is synced to disk
	lines         int
	head          string
	dirty         bool // bytes after size belong to a failed write
	recent, older map[string]bool
}

// open opens a log, verifies it, and removes an incomplete line that a crash left.
// It fails for a log that was changed.
func open(path string) (*log, error) {
	l := &log{lock: flock.New(path, flock.SetPermissions(0o600)), recent: map[string]bool{}}
	switch mine, err := l.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("the log can't be opened: %w", err)
	case !mine:
		return nil, fmt.Errorf("%s is written by another process", path)
	}
	var err error
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	s, err := scan(l.file, func(on line) { l.remember(on.Event.ID) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	l.lines, l.size, l.head = s.lines, s.size, s.head
	if s.half > 0 {
		slog.Warn("an incomplete line after a crash is removed; its event is redelivered", "file", path,
			"bytes", s.half)
		l.dirty = true
	}
	return l, errors.Join(l.clean(), l.file.Sync(), syncFolder(path))
}

// syncFolder makes the file's name as durable as the file.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// add appends the events that the log does not have yet, and returns when they are on disk.
func (l *log) add(events []*listener.Event) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text []byte
	fresh := map[string]bool{}
	head, failed := l.head, make([]error, len(events))
	for i, e := range events {
		if l.recent[e.ID] || l.older[e.ID] || fresh[e.ID] {
			continue
		}
		var err error
		if text, head, err = appendLine(text, head, e.Sequence, e.Append(nil)); err != nil {
			failed[i] = listener.Permanent(err)
			continue
		}
		fresh[e.ID] = true
	}
	if err := l.write(text); err != nil {
		for i := range failed {
			failed[i] = errors.Join(failed[i], err)
		}
		return failed
	}
	l.head, l.lines = head, l.lines+len(fresh)
	for id := range fresh {
		l.remember(id)
	}
	return failed
}

// write appends text and syncs it to disk.
func (l *log) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if err := l.clean(); err != nil {
		return err
	}
	l.dirty = true
	if _, err := l.file.Write(text); err != nil {
		return err
	}
	if err := l.file.Sync(); err != nil {
		return err
	}
	l.dirty, l.size = false, l.size+int64(len(text))
	return nil
}

// clean removes the remains of a failed write.
func (l *log) clean() error {
	if !l.dirty {
		return nil
	}
	err := l.file.Truncate(l.size)
	l.dirty = err != nil
	return err
}

// remember records that an event is in the log, and drops the oldest records.
func (l *log) remember(id string) {
	if len(l.recent) >= remembered {
		l.older, l.recent = l.recent, make(map[string]bool, remembered)
	}
	l.recent[id] = true
}
