// Package driver is the interface that a storage implements to hold the contents
// of binaries: content-addressed bytes, each stored once under its hash.
//
// A storage knows nothing of objects, names, media types or references: those
// belong to package binary.
//
// Every method is safe for concurrent use, honors its context, and returns errors of
// package errs:
//
//   - NotFound where stated
//   - TooLarge if a content exceeds the limit of the storage
//   - Unavailable if the storage can't be reached, throttles or is full
//   - Internal otherwise
package driver

import (
	"context"
	"io"
	"time"
)

// Storage stores contents.
type Storage interface {
	// Stage begins the upload of a content whose hash is not known yet. The
	// context applies to the writes too.
	Stage(ctx context.Context) (Staged, error)

	// Stat describes the content with a hash, and returns false if it does not exist. It is
	// strongly consistent: it sees every Commit that returned before it began, and no
	// content whose Delete returned before it began.
	Stat(ctx context.Context, hash string) (Info, bool, error)

	// Open reads length bytes of a content from offset, or fewer at its end; a negative
	// length reads to the end. offset is at most the size of the content. NotFound if the
	// content does not exist. The context applies to the reads too. If the content is
	// deleted during the reads, the reader either continues to its end or returns an error.
	Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error)

	// Delete removes a content. Deleting a missing content is not an error.
	Delete(ctx context.Context, hash string) error

	// List returns at most limit contents whose hash is greater than after, which
	// may be any string, in the order of their hashes. next is the after of the
	// next page, "" on the last one. It may be eventually consistent.
	List(ctx context.Context, after string, limit int) (contents []Info, next string, err error)

	// RemoveAbandoned removes the stages that began before a time and whose process
	// has ended, and returns their number. It never removes a stage that this
	// Storage uses. It may be eventually consistent.
	RemoveAbandoned(ctx context.Context, before time.Time) (int, error)

	// Ping returns an error when the storage can't be used.
	Ping(ctx context.Context) error

	// Close releases all resources. No stage or reader is open.
	Close() error
}

// ValidHash reports whether s has the form of a hash: 64 lower-case hexadecimal
// digits. A storage finds nothing under any other string, and refuses to commit
// to it with errs.Internal.
func ValidHash(s string) bool {
	if len(s) != hashLength {
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
	Modified time.Time // time of the last Commit, by the clock of the storage
}

// Staged is a content that is being uploaded. It is used by one goroutine.
type Staged interface {
	// Write appends bytes. errs.TooLarge when the content exceeds the limit of the
	// storage.
	io.Writer

	// Commit makes everything written so far durable under its hash, which the
	// caller has computed, atomically: no reader sees a part of a content. If the
	// content exists, its modification time is updated. Commit may be called again
	// until Discard, which restores a content that was deleted meanwhile. There is
	// no Write after the first Commit.
	Commit(ctx context.Context, hash string) error

	// Discard ends the stage and releases its resources; committed contents stay. The caller
	// always calls it, once. RemoveAbandoned removes the remains if Discard can't.
	Discard()
}

// Buffering is implemented by a storage whose stages hold bytes in memory.
type Buffering interface {
	// Buffered returns how many bytes of a content of this size a stage holds at most,
	// besides those of its budget; a negative size is unknown.
	Buffered(size int64) int64

	// StageWithin is Stage with a budget. The stage sends as many parts of its content at
	// once as the budget has memory for. Stage uses a budget of the storage.
	StageWithin(ctx context.Context, budget Budget) (Staged, error)
}

// Budget is memory that uploads share. It is safe for concurrent use.
type Budget interface {
	// TryReserve reserves bytes if they are free. It does not wait.
	TryReserve(bytes int64) bool

	// Release returns bytes that were reserved.
	Release(bytes int64)
}

// Signer is implemented by a storage from which clients can read a content
// directly.
type Signer interface {
	// Sign returns a URL with which anyone can read a content for a limited time. The
	// response has these headers.
	Sign(ctx context.Context, hash string, h SignedHeaders, validFor time.Duration) (url string, err error)
}

// SignedHeaders are headers of the response to a signed URL.
type SignedHeaders struct {
	ContentType, ContentDisposition, CacheControl string
}

// Variants is implemented by a storage that keeps what is made of a content beside it, as
// thumbnails. It can be made again, so a variant may get lost, and no backup has it.
// Contents and variants do not depend on each other: a storage may have one without the
// other.
type Variants interface {
	// PutVariant stores a variant under a name, atomically, and replaces one of the same
	// name.
	PutVariant(ctx context.Context, hash, name string, data []byte) error

	// Variant returns a variant. NotFound if it does not exist.
	Variant(ctx context.Context, hash, name string) ([]byte, error)

	// DeleteVariants removes all variants of a content.
	DeleteVariants(ctx context.Context, hash string) error

	// ListVariants returns at most limit hashes of contents that have variants, in the way
	// of Storage.List.
	ListVariants(ctx context.Context, after string, limit int) (hashes []string, next string, err error)
}

// MaxVariant is how many bytes a variant has at most.
const MaxVariant = 64 << 20

const hashLength = 64

// ValidVariant reports whether a text is the name of a variant: at most 32 characters of
// the name of a document. A storage finds nothing under any other, and refuses to store it
// with errs.Internal.
func ValidVariant(name string) bool { return len(name) <= 32 && ValidDocument(name) }

// VariantOf returns the content whose variant has a name in the storage: "<hash>.<name>".
func VariantOf(stored string) (hash string, ok bool) {
	if len(stored) < hashLength+2 || stored[hashLength] != '.' {
		return "", false
	}
	hash = stored[:hashLength]
	return hash, ValidHash(hash) && ValidVariant(stored[hashLength+1:])
}

// Documents is implemented by a storage that also keeps small documents under names,
// beside its contents: a backup's list of parts. They are not contents: List does not
// return them.
type Documents interface {
	// PutDocument stores a document durably and atomically, and replaces one of the
	// same name.
	PutDocument(ctx context.Context, name string, data []byte) error

	// Document returns a document. NotFound if it does not exist.
	Document(ctx context.Context, name string) ([]byte, error)

	// DocumentNames returns the names of all documents in their order.
	DocumentNames(ctx context.Context) ([]string, error)

	// DeleteDocument removes a document. Deleting a missing document is not an error.
	DeleteDocument(ctx context.Context, name string) error
}

// MaxDocument is how many bytes a document has at most.
const MaxDocument = 256 << 20

// ValidDocument reports whether a text is the name of a document: 1 to 100 letters,
// digits, '.', '-' and '_', not beginning with a dot. A storage finds nothing under any
// other, and refuses to store it with errs.Internal.
func ValidDocument(name string) bool {
	if name == "" || len(name) > 100 || name[0] == '.' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
