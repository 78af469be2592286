package s3storage_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

// servers start the servers to test, by name: besides those of the tests, the one
// that BELFRY_TEST_S3_URL names with its bucket, which is empty.
func servers(t *testing.T) map[string]func(testing.TB) *backing.S3Server {
	t.Helper()
	all := backing.S3Servers()
	if another := os.Getenv("BELFRY_TEST_S3_URL"); another != "" {
		u, err := url.Parse(another)
		must(t, err)
		all["another"] = func(testing.TB) *backing.S3Server {
			return &backing.S3Server{
				Name: "another", Endpoint: u.Scheme + "://" + u.Host, Bucket: path.Base(u.Path),
				Region:    cmp.Or(os.Getenv("AWS_REGION"), "us-east-1"),
				AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"),
			}
		}
	}
	return all
}

// The servers differ in what they compute and in the errors that they return. What
// a storage does is the same on each.
func TestEveryServer(t *testing.T) {
	t.Parallel()
	for name, start := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			t.Run("conformance", func(t *testing.T) { testConformance(t, server) })
			for name, test := range map[string]func(*testing.T, *backing.S3Server){
				"several segments of several parts are joined": testSegments,
				"pieces of a segment are copied":               testPieces,
				"copies are verified":                          testVerification,
				"wrong copies are detected":                    testWrongCopies,
				"prefixes may have special characters":         testPrefixes,
				"a signed URL reads one content":               testSignedURL,
				"errors of refusals say what to correct":       testRefusals,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(t, server)
				})
			}
		})
	}
}

// prefixed returns the options of a storage that shares the bucket with others.
func prefixed(o s3storage.Options, prefix string) s3storage.Options {
	o.Prefix = prefix
	return o
}

func testSegments(t *testing.T, server *backing.S3Server) {
	s := open(t, prefixed(options(server), "segments/"))
	s.SetSegmentParts(2)
	short, three := random("a", 3*s3storage.PartSize), random("b", 4*s3storage.PartSize+100)
	putAll(t, s, short, three, short) // at the first the server is not known
}

// putAll puts contents, which the storage then holds without remains.
func putAll(t *testing.T, s *s3storage.Storage, contents ...[]byte) {
	t.Helper()
	for _, c := range contents {
		must(t, put(t.Context(), s, c))
		holds(t, s, c)
	}
	tidies(t, s, 0)
}

// A segment is copied in pieces, or as a whole where copied pieces have no checksum.
func testPieces(t *testing.T, server *backing.S3Server) {
	s := open(t, prefixed(options(server), "pieces/"))
	s.SetPieceParts(2)
	s.SetSegmentParts(6)
	one, two := random("a", 5*s3storage.PartSize), random("b", 8*s3storage.PartSize+100)
	putAll(t, s, one, two, one) // at the first the server is not known
}

// verification is the number of requests by which a content is verified after a copy.
type verification struct{ heads, gets int }

// verifications are those of copies of one segment, and of several. Who returns a
// checksum of the copy needs none.
var verifications = map[string]struct{ one, several verification }{
	"versitygw": {verification{}, verification{}},
	"MinIO":     {verification{heads: 1}, verification{gets: 1}},
}

// docs/storage.md has the table of what is verified.
func testVerification(t *testing.T, server *backing.S3Server) {
	p := front(t, server, true)
	s := open(t, prefixed(p.options(server), "verification/"))
	want, known := verifications[server.Name]
	for name, test := range map[string]struct {
		segmentParts, pieceParts int32
		c                        []byte
		want                     verification
	}{
		"put":              {128, 128, random("small", 4096), verification{}},
		"one segment":      {128, 128, random("one", 2*s3storage.PartSize), want.one},
		"several pieces":   {128, 1, random("pieces", 3*s3storage.PartSize), want.one},
		"several segments": {1, 1, random("several", 3*s3storage.PartSize), want.several},
	} {
		s.SetSegmentParts(test.segmentParts)
		s.SetPieceParts(test.pieceParts)
		p.set(nil)
		must(t, put(t.Context(), s, test.c))
		got := verification{p.requests("Head"), p.requests("GetObject")}
		t.Logf("%s: verified by %+v", name, got)
		if known && got != test.want {
			t.Errorf("%s: verified by %+v, want %+v", name, got, test.want)
		}
	}
}

// wrongCopier is a proxy that replaces copies by other bytes of the same size.
type wrongCopier struct {
	*proxy
	t      *testing.T
	server *backing.S3Server
	other  []byte // instead of the copied object
	hashed bool   // the server has computed its SHA-256

	mu         sync.Mutex
	algorithms map[string]types.ChecksumAlgorithm // of the uploads, by key
}

func (c *wrongCopier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.URL.Path, "/"+c.server.Bucket+"/")
	switch op := operation(r); {
	case op == "CreateMultipartUpload":
		c.mu.Lock()
		c.algorithms[key] = types.ChecksumAlgorithm(r.Header.Get("X-Amz-Checksum-Algorithm"))
		c.mu.Unlock()
	case op == "CopyObject":
		c.copyObject(r.Context(), w, key)
		return
	case op == "UploadPartCopy" && r.URL.Query().Get("partNumber") == "2":
		c.copyPart(r.Context(), w, key, r.URL.Query().Get("uploadId"))
		return
	}
	c.pass.ServeHTTP(w, r)
}

func (c *wrongCopier) copyObject(ctx context.Context, w http.ResponseWriter, key string) {
	in := &s3.PutObjectInput{Bucket: &c.server.Bucket, Key: &key, Body: bytes.NewReader(c.other)}
	if c.hashed {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
	}
	out, err := direct(c.server).PutObject(ctx, in)
	if err != nil {
		c.t.Error(err)
		return
	}
	fmt.Fprintf(w, `<CopyObjectResult><ETag>%s</ETag></CopyObjectResult>`, *out.ETag)
}

// copyPart returns the checksum of the wrong bytes if the server returns one of
// copied parts.
func (c *wrongCopier) copyPart(ctx context.Context, w http.ResponseWriter, key, upload string) {
	c.mu.Lock()
	algorithm := c.algorithms[key]
	c.mu.Unlock()
	number := int32(2)
	client := direct(c.server,
		func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired })
	out, err := client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &c.server.Bucket, Key: &key, UploadId: &upload, PartNumber: &number, Body: bytes.NewReader(c.other),
		ChecksumAlgorithm: algorithm,
	})
	if err != nil {
		c.t.Error(err)
		return
	}
	fmt.Fprintf(w, `<CopyPartResult><ETag>%s</ETag>`, *out.ETag)
	if out.ChecksumCRC32C != nil {
		fmt.Fprintf(w, `<ChecksumCRC32C>%s</ChecksumCRC32C>`, *out.ChecksumCRC32C)
	}
	fmt.Fprint(w, `</CopyPartResult>`)
}

// A content that the server has copied wrongly is not acknowledged, and does not
// stay. It can be committed again.
func testWrongCopies(t *testing.T, server *backing.S3Server) {
	c := random("a", 2*s3storage.PartSize)
	flipped := bytes.Clone(c)
	flipped[len(c)-1]++
	for name, test := range map[string]struct {
		segmentParts, pieceParts int32
		other                    []byte
		hashed                   bool
	}{
		"one segment, with a hash":    {2, 2, flipped, true},
		"one segment, without a hash": {2, 2, flipped, false},
		"several pieces":              {2, 1, flipped[s3storage.PartSize:], false},
		"several segments":            {1, 1, flipped[s3storage.PartSize:], false},
	} {
		t.Run(name, func(t *testing.T) {
			p := front(t, server, true)
			s := open(t, prefixed(fastRetry(p.options(server)), "wrong/"+name+"/"))
			s.SetSegmentParts(test.segmentParts)
			s.SetPieceParts(test.pieceParts)
			wrong := &wrongCopier{proxy: p, t: t, server: server, other: test.other, hashed: test.hashed,
				algorithms: map[string]types.ChecksumAlgorithm{}}
			g := stage(t, s, c)
			p.set(wrong.ServeHTTP)
			for range 2 {
				err := g.Commit(t.Context(), hashOf(c))
				wantKind(t, err, errs.Internal)
				if !strings.Contains(err.Error(), "has copied") {
					t.Errorf("%q does not say what was wrong", err)
				}
				lacks(t, s, hashOf(c))
			}
			p.set(nil)
			must(t, g.Commit(t.Context(), hashOf(c)))
			holds(t, s, c)
		})
	}
}
