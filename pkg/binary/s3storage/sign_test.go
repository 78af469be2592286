package s3storage_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

// A signed URL needs no credentials, and allows nothing but reading its content.
func testSignedURL(t *testing.T, server *backing.S3Server) {
	s := open(t, prefixed(options(server), "sign/"))
	c := random("a", 100_000)
	must(t, put(t.Context(), s, c))
	sign := func(hash string, h driver.SignedHeaders) string {
		url, err := s.Sign(t.Context(), hash, h, time.Minute)
		must(t, err)
		return url
	}
	headers := driver.SignedHeaders{
		ContentType:        "text/plain; charset=utf-8",
		ContentDisposition: `attachment; filename="a+b & c.txt"; filename*=UTF-8''%C5%BC%C3%B3%C5%82w.txt`,
		CacheControl:       "private, max-age=31536000, immutable",
	}
	signed := sign(hashOf(c), headers)
	for name, test := range map[string]struct {
		url, method, part string
		status            int
		body              string
	}{
		"all of it":     {signed, "GET", "", http.StatusOK, string(c)},
		"a part":        {signed, "GET", "bytes=10-19", http.StatusPartialContent, string(c[10:20])},
		"the end":       {signed, "GET", "bytes=-5", http.StatusPartialContent, string(c[len(c)-5:])},
		"after the end": {signed, "GET", "bytes=100000-", http.StatusRequestedRangeNotSatisfiable, ""},
		"another type": {strings.Replace(signed, "text%2Fplain", "text%2Fhtml", 1), "GET", "",
			http.StatusForbidden, ""},
		"another signature": {strings.Replace(signed, "X-Amz-Signature=", "X-Amz-Signature=0", 1), "GET", "",
			http.StatusForbidden, ""},
		"no signature":      {signed[:strings.IndexByte(signed, '?')], "GET", "", http.StatusForbidden, ""},
		"not to change it":  {signed, "DELETE", "", http.StatusForbidden, ""},
		"a missing content": {sign(hashOf(nil), driver.SignedHeaders{}), "GET", "", http.StatusNotFound, ""},
		"without headers":   {sign(hashOf(c), driver.SignedHeaders{}), "GET", "", http.StatusOK, string(c)},
	} {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, test.url, nil)
			must(t, err)
			if test.part != "" {
				req.Header.Set("Range", test.part)
			}
			res, err := client(server).Do(req)
			must(t, err)
			defer func() { _ = res.Body.Close() }()
			body, err := io.ReadAll(res.Body)
			must(t, err)
			if res.StatusCode != test.status {
				t.Fatalf("status %s, want %d: %s", res.Status, test.status, body)
			}
			if test.body == "" {
				return
			}
			if string(body) != test.body {
				t.Errorf("got %d bytes that are not the %d that were put", len(body), len(test.body))
			}
			if test.url != signed {
				return
			}
			for name, want := range map[string]string{
				"Content-Type": headers.ContentType, "Content-Disposition": headers.ContentDisposition,
				"Cache-Control": headers.CacheControl,
			} {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
	holds(t, s, c)
}

func TestInvalidSignRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := open(t, options(backing.S3(t)))
	for _, validFor := range []time.Duration{-1, 0, time.Millisecond, 8 * 24 * time.Hour} {
		_, err := s.Sign(t.Context(), hashOf(nil), driver.SignedHeaders{}, validFor)
		wantKind(t, err, errs.Internal)
	}
	_, err := s.Sign(t.Context(), "../../readme", driver.SignedHeaders{}, time.Minute)
	wantKind(t, err, errs.NotFound)
}
