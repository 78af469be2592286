package s3storage_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

// direct is a client that bypasses the storage.
func direct(server *backing.S3Server, with ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		Region: server.Region, BaseEndpoint: &server.Endpoint, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(server.AccessKey, server.SecretKey, ""),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.TLSClientConfig.RootCAs = server.RootCAs
		}),
	}, with...)
}

// A bucket may have objects of others.
func TestObjectsOfOthersAreIgnored(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	bucket := direct(server)
	hash := hashOf([]byte("of others"))
	others := []string{
		"readme", "contents/readme", "contents/zz/" + hash, "contents/" + hash, "contents/00/" + hash,
		"tmp/1", "tmp/readme/1", "other/contents/" + hash[:2] + "/" + hash,
		"other/tmp/0199f3a1-0000-7000-8000-000000000000/1",
	}
	for _, key := range others {
		_, err := bucket.PutObject(t.Context(),
			&s3.PutObjectInput{Bucket: &server.Bucket, Key: &key, Body: bytes.NewReader([]byte("of others"))})
		must(t, err)
		_, err = bucket.CreateMultipartUpload(t.Context(),
			&s3.CreateMultipartUploadInput{Bucket: &server.Bucket, Key: aws.String(key + "-upload")})
		must(t, err)
	}
	s := open(t, options(server))
	c := random("a", 100)
	must(t, put(t.Context(), s, c))
	for _, limit := range []int{1, 2, 5000} {
		page, next, err := s.List(t.Context(), "", limit)
		if err != nil || len(page) != 1 || page[0].Hash != hashOf(c) || next != "" {
			t.Fatalf("got %+v and then %q, error %v; want the one content", page, next, err)
		}
	}
	tidies(t, s, 0)
	for _, key := range others {
		_, err := bucket.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &server.Bucket, Key: &key})
		must(t, err)
	}
	uploads, err := bucket.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &server.Bucket})
	must(t, err)
	if len(uploads.Uploads) != len(others) {
		t.Errorf("%d uploads of others are left of %d", len(uploads.Uploads), len(others))
	}
}

// Prefixes may have characters that S3 decodes in special ways.
func testPrefixes(t *testing.T, server *backing.S3Server) {
	c := random("a", s3storage.PartSize+100)
	for i, prefix := range []string{"", "files/", "files", "a b+c%20d&e=f?g#h/żółw/"} {
		o := options(server)
		o.Prefix = prefix
		s := open(t, o)
		s.SetSegmentParts(int32(1 + i%2*100)) // both methods of copying
		lacks(t, s, hashOf(c))
		must(t, put(t.Context(), s, c))
		holds(t, s, c)
		page, _, err := s.List(t.Context(), "", 10)
		if err != nil || len(page) != 1 {
			t.Fatalf("%q: %d contents are listed, error %v", prefix, len(page), err)
		}
		tidies(t, s, 0)
	}
}

func TestCommitUnderWrongHashIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, options(backing.S3(t)))
	wrong := hashOf([]byte("wrong"))
	for name, c := range map[string][]byte{"small": random("a", 100), "large": random("a", s3storage.PartSize+100)} {
		g := stage(t, s, c)
		wantKind(t, g.Commit(t.Context(), wrong), errs.Internal)
		lacks(t, s, wrong)
		if err := g.Commit(t.Context(), hashOf(c)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		holds(t, s, c)
	}
}

func TestContentBeyondTheLimitIsTooLarge(t *testing.T) {
	t.Parallel()
	s := open(t, options(backing.S3(t)))
	g := stage(t, s, nil)
	s3storage.Pretend(g, s3storage.MaxSize-1)
	_, err := g.Write([]byte("ab"))
	wantKind(t, err, errs.TooLarge)
}

// A stage of another process is known only by its objects and uploads. It is not
// removed while it grows.
func TestGrowingStageOfAnotherProcessIsNotRemoved(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	// The gateway moves an upload's beginning with each part; S3 does not.
	initiated := regexp.MustCompile(`<Initiated>[^<]*</Initiated>`)
	p.change = func(op string, res *http.Response) {
		if op != "ListMultipartUploads" {
			return
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		body = initiated.ReplaceAll(body, []byte("<Initiated>2020-01-02T03:04:05.000Z</Initiated>"))
		res.Body = io.NopCloser(bytes.NewReader(body))
		res.ContentLength = int64(len(body))
		res.Header.Set("Content-Length", fmt.Sprint(len(body)))
	}
	other, s := open(t, options(server)), open(t, p.options(server))
	c := random("a", 3*s3storage.PartSize)
	g := stage(t, other, c)
	must(t, s3storage.AwaitParts(t.Context(), g))
	if n, err := s.RemoveAbandoned(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Fatalf("%d stages were tidied up, error %v", n, err)
	}
	must(t, g.Commit(t.Context(), hashOf(c)))
	holds(t, s, c)

	// Once a segment is started, aborting deletes the earlier ones too.
	other.SetSegmentParts(1)
	must(t, s3storage.AwaitParts(t.Context(), stage(t, other, c)))
	tidies(t, s, 2)
	tidies(t, s, 0)
}

// docs/storage.md promises these numbers of requests, which S3 charges for.
func TestNumberOfRequests(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, p.options(server))
	for name, test := range map[string]struct {
		c    []byte
		want map[string]int
	}{
		"nothing":  {nil, map[string]int{"PutObject": 1}},
		"small":    {random("small", 4096), map[string]int{"PutObject": 1}},
		"one part": {random("part", s3storage.PartSize), map[string]int{"PutObject": 1}},
		"large": {random("large", 2*s3storage.PartSize+1), map[string]int{
			"CreateMultipartUpload": 1, "UploadPart": 3, "CompleteMultipartUpload": 1, "CopyObject": 1,
			"DeleteObject": 1,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			hash := hashOf(test.c)
			for _, step := range []struct {
				act  func() error
				want map[string]int
			}{
				{func() error { return put(t.Context(), s, test.c) }, test.want},
				{func() error { _, _, err := s.Stat(t.Context(), hash); return err }, map[string]int{"Head": 1}},
				{func() error { holds(t, s, test.c); return nil }, map[string]int{"GetObject": 1}},
				{func() error { return s.Delete(t.Context(), hash) }, map[string]int{"DeleteObject": 1}},
				{func() error { return s.Ping(t.Context()) }, map[string]int{"Head": 1}},
			} {
				p.set(nil)
				must(t, step.act())
				if !maps.Equal(p.count, step.want) {
					t.Errorf("the requests are %v, want %v", p.count, step.want)
				}
			}
		})
	}
}
