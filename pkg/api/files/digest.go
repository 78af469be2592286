package files

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/dunglas/httpsfv"

	"belfry/pkg/errs"
)

const digestAlgorithm = "sha-256"

// maxDigests bounds the digests of a header, each of which takes many times its bytes.
const maxDigests = 32

// contentDigest parses Content-Digest (RFC 9530). It returns the expected SHA-256 of the
// content, nil without one: digests of other algorithms are ignored.
func contentDigest(lines []string) ([]byte, error) {
	if len(lines) == 0 {
		return nil, nil
	}
	if count := strings.Count(strings.Join(lines, ","), ","); count >= maxDigests {
		return nil, errs.New(errs.Invalid, "Content-Digest has more than %d digests", maxDigests)
	}
	digests, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil, malformedDigest()
	}
	member, ok := digests.Get(digestAlgorithm)
	if !ok {
		return nil, nil
	}
	item, _ := member.(httpsfv.Item)
	digest, _ := item.Value.([]byte)
	if len(digest) != sha256.Size {
		return nil, malformedDigest()
	}
	return digest, nil
}

func malformedDigest() error {
	return errs.New(errs.Invalid, "Content-Digest is malformed: %s=:<the digest in base64>: is expected",
		digestAlgorithm)
}

// reprDigest returns the Repr-Digest of the content with a hash.
func reprDigest(hash string) string {
	digest, err := hex.DecodeString(hash)
	if err != nil {
		return ""
	}
	return digestAlgorithm + "=:" + base64.StdEncoding.EncodeToString(digest) + ":"
}
