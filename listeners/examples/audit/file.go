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

// remembered is how many events are known at least, so that one which comes
// again is written once. After a crash a few hundred come again.
const remembered = 1 << 16

// log is the file. One process writes it at a time.
type log struct {
	lock *flock.Flock

	mu            sync.Mutex // retries of dead letters come beside the others
	file          *os.File
	size          int64 // of what is on disk for sure
	lines         int
	head          string
	dirty         bool // what lies behind size is of an attempt that failed
	recent, older map[string]bool
}

// open opens a log, checks all of it, and takes away what a crash has left of
// a line. A log that was changed is not written on.
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
		slog.Warn("a line that a crash has cut is taken away; its event comes again", "file", path, "bytes", s.half)
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

// add writes events that are not there yet, and returns when they are on disk.
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

// write makes text durable behind what is there.
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

// clean takes away what an attempt left that failed.
func (l *log) clean() error {
	if !l.dirty {
		return nil
	}
	err := l.file.Truncate(l.size)
	l.dirty = err != nil
	return err
}

// remember notes that an event is there, and forgets the oldest ones.
func (l *log) remember(id string) {
	if len(l.recent) >= remembered {
		l.older, l.recent = l.recent, make(map[string]bool, remembered)
	}
	l.recent[id] = true
}
