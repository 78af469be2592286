package weak

import (
	"bytes"
	_ "embed"
	"strings"
	"sync"

	"github.com/bits-and-blooms/bloom/v3"
)

// commonFilter is a Bloom filter of the 100,000 most common passwords of at least 8 bytes, folded. `make passwords` writes it.
//
//go:embed common.bloom
var commonFilter []byte

// loadCommon decodes the filter when the first password is checked, so that the start of belfry does not wait for it.
var loadCommon = sync.OnceValue(func() *bloom.BloomFilter {
	var f bloom.BloomFilter
	if _, err := f.ReadFrom(bytes.NewReader(commonFilter)); err != nil {
		panic("weak: the embedded filter is damaged: " + err.Error()) // a test reads it
	}
	return &f
})

// Fold returns the form in which passwords are compared with the list.
func Fold(password string) string { return strings.ToLower(password) }

// isCommon reports whether a password is on the list. One in a million others is a false positive.
func isCommon(password string) bool { return loadCommon().TestString(Fold(password)) }
