// Package driver is what a storage provides so that belfry can keep the
// contents of binaries in it: bytes, addressed by their hash, kept once.
//
// A storage knows nothing of objects, names, media types or of who still needs
// a content: package binary does.
//
// Every method is safe for concurrent use, honours its context, and reports
// errors of package errs: NotFound where stated, TooLarge when a content is
// beyond what the storage takes, Unavailable when it is away, throttles or is
// full, Internal otherwise.
package driver

import (
	"context"
	"io"
	"time"
)

// Storage keeps contents.
type Storage interface {
	// Stage begins a content whose hash is not known yet. The context governs
	// the writing too.
	Stage(ctx context.Context) (Staged, error)

	// Stat returns what is kept under a hash, and false when nothing is. The
	// read is strong: it sees every Commit that returned, and no content whose
	// Delete returned, before it began.
	Stat(ctx context.Context, hash string) (Info, bool, error)

	// Open reads length bytes of a content from offset; a negative length reads
	// to the end, and what lies beyond the end is not read. offset is at most
	// the content's size. NotFound when there is none. The context governs the
	// whole reading. A content that is deleted meanwhile may be read to its end or
	// break off with an error.
	Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error)

	// Delete removes a content. That there is none is no error.
	Delete(ctx context.Context, hash string) error

	// List returns contents in the order of their hashes, at most limit of
	// them, from behind after, which may be any string. next is "" when these
	// are the last. It may lag.
	List(ctx context.Context, after string, limit int) (contents []Info, next string, err error)

	// RemoveAbandoned removes what stages left behind that began before a time and whose
	// process is gone, and reports how many these were. Stages of this very
	// Storage are left alone whenever they began. It may lag.
	RemoveAbandoned(ctx context.Context, before time.Time) (int, error)

	// Ping reports whether the storage answers.
	Ping(ctx context.Context) error

	// Close ends all use. No stage or reader is open.
	Close() error
}

// ValidHash reports whether s has the form of a hash: 64 lower-case hexadecimal
// digits. Under anything else a storage finds nothing, and commits nothing
// (errs.Internal: the caller computed it wrongly).
func ValidHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Info describes a content.
type Info struct {
	Hash     string // SHA-256, lower-case hexadecimal
	Size     int64
	Modified time.Time // of its latest Commit, by the storage's clock
}

// Staged is a content on its way in. It is used by one goroutine.
type Staged interface {
	// Write adds bytes. What a single content can have at most is the
	// storage's to say: errs.TooLarge.
	io.Writer

	// Commit makes everything written so far durable under its hash, which the
	// caller has computed, in one act: nobody ever sees a part of a content.
	// A content that is there already is kept, and counts as modified now.
	// Commit may be called again, until Discard: it brings a content back that
	// was deleted meanwhile. Nothing is written after the first Commit.
	Commit(ctx context.Context, hash string) error

	// Discard ends the stage and frees what it holds; what was committed
	// stays. It is always called, once, and needs no context: what it can't
	// remove, RemoveAbandoned does.
	Discard()
}

// Signer is implemented by a storage that can let a client read a content
// directly.
type Signer interface {
	// Sign returns a URL that gives a content to whoever has it, with these
	// headers in the reply, for a time.
	Sign(ctx context.Context, hash string, h SignedHeaders, lasting time.Duration) (url string, err error)
}

// SignedHeaders are what the reply to a signed URL says of a content.
type SignedHeaders struct {
	ContentType, ContentDisposition, CacheControl string
}
