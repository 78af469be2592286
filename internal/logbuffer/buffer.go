// Package logbuffer keeps the latest lines of a process' log in memory, so that they can be searched.
package logbuffer

import (
	"log/slog"
	"sync"
	"time"
)

// Bounds of a Buffer. Beyond them the oldest lines are dropped.
const (
	maxLines   = 4000
	maxBytes   = 1 << 20 // of the texts of all lines
	maxMessage = 1 << 10 // of a line
	maxAttrs   = 4 << 10
	maxRequest = 200

	lineBytes = 120 // about what a line takes besides its texts

	// Most is how many bytes a buffer takes at most, about.
	Most = maxBytes + maxLines*lineBytes
)

// Line is a line of a log.
type Line struct {
	Sequence uint64 // from 1 on, in the order of the log
	At       time.Time
	Level    slog.Level
	Message  string
	Request  string // the id of the request that it is about; "" for none
	Attrs    string // the others, as key=value
	Cut      bool   // texts were too long
}

func (l *Line) bytes() int { return len(l.Message) + len(l.Request) + len(l.Attrs) }

// Buffer keeps lines. It is safe for concurrent use.
type Buffer struct {
	mu    sync.Mutex
	lines []Line // a ring, once it has maxLines
	last  uint64 // sequence of the newest
	kept  int
	bytes int
}

// New returns an empty buffer. Memory is taken as lines come.
func New() *Buffer { return &Buffer{} }

// add keeps a line, and drops the oldest ones as far as necessary.
func (b *Buffer) add(l Line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.kept > 0 && (b.kept == maxLines || b.bytes+l.bytes() > maxBytes) {
		oldest := b.at(b.last - uint64(b.kept) + 1)
		b.bytes -= oldest.bytes()
		*oldest = Line{}
		b.kept--
	}
	b.last++
	b.kept++
	b.bytes += l.bytes()
	l.Sequence = b.last
	if len(b.lines) < maxLines {
		b.lines = append(b.lines, l)
	} else {
		*b.at(l.Sequence) = l
	}
}

// at returns the place of a line, which is kept.
func (b *Buffer) at(sequence uint64) *Line { return &b.lines[(sequence-1)%maxLines] }

// Select returns up to n lines for which match holds, the newest first. They are newer than the sequence after, and
// older than before; 0: any. more reports whether older lines match, too.
func (b *Buffer) Select(after, before uint64, n int, match func(*Line) bool) (found []Line, more bool) {
	for _, l := range b.between(after, before) { // requests that log don't wait for match
		if !match(&l) {
			continue
		}
		if len(found) == n {
			return found, true
		}
		found = append(found, l)
	}
	return found, false
}

// between returns the lines that are newer than one sequence and older than another, the newest first.
func (b *Buffer) between(after, before uint64) []Line {
	b.mu.Lock()
	defer b.mu.Unlock()
	newest, oldest := b.last, b.last-uint64(b.kept)+1
	if before > 0 && before <= newest {
		newest = before - 1
	}
	if after >= newest {
		return nil
	}
	oldest = max(oldest, after+1)
	all := make([]Line, 0, newest-oldest+1)
	for s := newest; s >= oldest && s > 0; s-- {
		all = append(all, *b.at(s))
	}
	return all
}

// Stats are what a buffer has.
type Stats struct {
	Lines   int
	Dropped uint64    // that were kept before
	Oldest  time.Time // of the oldest line; zero: no lines
	Bytes   int64
}

// Stats returns how much the buffer keeps.
func (b *Buffer) Stats() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Stats{Lines: b.kept, Dropped: b.last - uint64(b.kept), Bytes: int64(b.bytes + len(b.lines)*lineBytes)}
	if b.kept > 0 {
		s.Oldest = b.at(s.Dropped + 1).At
	}
	return s
}
