package object

import (
	"github.com/google/uuid"

	"belfry/pkg/errs"
)

// MaxUUID is the longest uuid in characters.
const MaxUUID = 200

// NewUUID makes a uuid for an object that came without one: a UUIDv7, so that
// objects sort by the time of their creation.
func NewUUID() string {
	id, err := uuid.NewV7()
	if err != nil {
		// The operating system's random source failed: no object can be created.
		panic("object: " + err.Error())
	}
	return id.String()
}

// ValidUUID reports whether s can be a uuid: 1 to MaxUUID characters of
// A-Z a-z 0-9 . _ - @ +, not beginning with a dot.
func ValidUUID(s string) bool {
	if s == "" || len(s) > MaxUUID || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if !uuidByte[s[i]] {
			return false
		}
	}
	return true
}

// CheckUUID is ValidUUID as an error of kind errs.Invalid.
func CheckUUID(s string) error {
	if ValidUUID(s) {
		return nil
	}
	return errs.New(errs.Invalid,
		"not a uuid: 1 to %d characters of A-Z a-z 0-9 . _ - @ + are expected, the first of them no dot", MaxUUID)
}

var uuidByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' ||
			c == '.' || c == '_' || c == '-' || c == '@' || c == '+'
	}
	return t
}()
