package s3storage_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"testing"

	"belfry/pkg/binary/s3storage"
	"belfry/test/backing"
	"belfry/test/kit"
)

// A content of more than 640 MiB has several segments. make soak uploads such
// contents, the first of 1 GiB; make test has small segments.
func TestSoakLargeContentsAreStoredWhole(t *testing.T) {
	soak := kit.Soak(t, 1)
	started := map[string]*backing.S3Server{}
	for name, start := range servers(t) {
		started[name] = start(t)
	}
	for soak.More() {
		segmentParts, size := int32(1), s3storage.PartSize+soak.Rand().Int64N(s3storage.PartSize)
		if soak.Long() {
			segmentParts, size = 128, 640<<20+soak.Rand().Int64N(900<<20)
			if soak.Round() == 1 {
				size = 1 << 30
			}
		}
		for name, server := range started {
			t.Logf("%s: %d bytes", name, size)
			s := open(t, options(server))
			s.SetSegmentParts(segmentParts)
			hash := upload(t, s, soak.Seed(), size)
			info, found, err := s.Stat(t.Context(), hash)
			if err != nil || !found || info.Size != size {
				t.Fatalf("%s: stat of a content of %d bytes: %+v, found %v, error %v", name, size, info, found, err)
			}
			r, err := s.Open(t.Context(), hash, 0, -1)
			must(t, err)
			sum := sha256.New()
			_, err = io.Copy(sum, r)
			must(t, err)
			must(t, r.Close())
			if hex.EncodeToString(sum.Sum(nil)) != hash {
				t.Fatalf("%s: other bytes were read than the %d that were put", name, size)
			}
			must(t, s.Delete(t.Context(), hash))
			tidies(t, s, 0)
		}
	}
}

// upload stores random bytes and returns their hash.
func upload(t *testing.T, s *s3storage.Storage, seed uint64, size int64) string {
	t.Helper()
	g, err := s.Stage(t.Context())
	must(t, err)
	defer g.Discard()
	var key [32]byte
	binary.BigEndian.PutUint64(key[:], seed)
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(g, sum), io.LimitReader(rand.NewChaCha8(key), size))
	must(t, err)
	hash := hex.EncodeToString(sum.Sum(nil))
	must(t, g.Commit(t.Context(), hash))
	return hash
}
