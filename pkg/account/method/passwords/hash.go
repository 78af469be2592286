package passwords

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"runtime"
	"strings"
	"time"

	"golang.org/x/crypto/argon2"

	"belfry/pkg/account/guess"
	"belfry/pkg/errs"
)

// Limits of a password's length, in bytes.
const (
	MinPassword = 8
	MaxPassword = 1024
)

// HashParams are the costs of argon2id.
type HashParams struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// DefaultHashParams returns the minimum that OWASP recommends.
func DefaultHashParams() HashParams { return HashParams{Memory: 19 << 10, Time: 2, Threads: 1} }

const (
	saltSize = 16
	keySize  = 32

	// MaxQueueTime is how long a request waits for a slot to hash in. Clients do
	// not wait longer than that.
	MaxQueueTime = 20 * time.Second
)

// Hasher hashes passwords, at most as many at once as there are cores: more would not be
// faster and would take memory.
type Hasher struct {
	Params HashParams
	Slots  chan struct{} // holds the hashes that are being made
	Wait   time.Duration // most that a request waits for a slot
	Derive func(p HashParams, password string, salt []byte, size int) []byte

	dummy string // replaces a missing hash in comparisons
}

// NewHasher makes a Hasher, which derives keys by argon2id, so many at once; 0: as many as there are cores.
func NewHasher(p HashParams, atOnce int) *Hasher {
	if atOnce <= 0 {
		atOnce = runtime.GOMAXPROCS(0)
	}
	h := &Hasher{Params: p, Slots: make(chan struct{}, atOnce), Wait: MaxQueueTime,
		Derive: HashParams.key}
	h.dummy = encodeHash(p, make([]byte, saltSize), make([]byte, keySize))
	return h
}

// Memory returns how many bytes the hashes at work take, and how many they may.
func (h *Hasher) Memory() (used, most int64) {
	one := int64(h.Params.Memory) << 10
	return int64(len(h.Slots)) * one, int64(cap(h.Slots)) * one
}

// Acquire waits for a slot.
func (h *Hasher) Acquire(ctx context.Context) (release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, h.Wait)
	defer cancel()
	select {
	case h.Slots <- struct{}{}:
		return func() { <-h.Slots }, nil
	case <-waiting.Done():
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, guess.Limited("too many logins at once", MaxQueueTime)
	}
}

// hash returns the encoded hash of a password, in the form of PasswordForm.
func (h *Hasher) hash(ctx context.Context, password string) (string, error) {
	release, err := h.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	return encodeHash(h.Params, salt, h.Derive(h.Params, PasswordForm(password), salt, keySize)), nil
}

// matches reports whether an encoded hash is of a password, and whether the hash should be replaced: it is weaker than
// a new one, or it is of the password as it was sent, as in earlier releases. For "", which means no hash, it does the
// same work as for a hash of neither form. So the number of computed hashes only depends on the password.
func (h *Hasher) matches(ctx context.Context, encoded, password string) (ok, weak bool, err error) {
	known := encoded != ""
	if !known {
		encoded = h.dummy
	}
	p, salt, want, err := decodeHash(encoded)
	if err != nil {
		return false, false, err
	}
	release, err := h.Acquire(ctx)
	if err != nil {
		return false, false, err
	}
	defer release()
	for i, form := range passwordForms(password) {
		got := h.Derive(p, form, salt, len(want))
		if subtle.ConstantTimeCompare(got, want) == 1 && known {
			return true, i > 0 || p.Memory < h.Params.Memory || p.Time < h.Params.Time || len(want) < keySize, nil
		}
	}
	return false, false, nil
}

func (p HashParams) key(password string, salt []byte, size int) []byte {
	return argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, uint32(size)) //nolint:gosec // tens of bytes
}

// encodeHash writes a hash in the format of the argon2 reference program.
func encodeHash(p HashParams, salt, key []byte) string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s",
		argon2.Version, p.Memory, p.Time, p.Threads, b64.EncodeToString(salt), b64.EncodeToString(key))
}

// decodeHash reads what encodeHash wrote. Its errors don't quote it.
func decodeHash(encoded string) (p HashParams, salt, key []byte, err error) {
	bad := errs.New(errs.Internal, "a user's password is not an argon2id hash")
	parts := strings.Split(encoded, "$")
	if len(parts) != 6 || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return p, nil, nil, bad
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.Memory, &p.Time, &p.Threads); err != nil || p.Time == 0 ||
		p.Threads == 0 {
		return p, nil, nil, bad
	}
	b64 := base64.RawStdEncoding
	salt, err1 := b64.DecodeString(parts[4])
	key, err2 := b64.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(key) == 0 {
		return p, nil, nil, bad
	}
	return p, salt, key, nil
}
