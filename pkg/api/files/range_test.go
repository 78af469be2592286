package files

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

const rangeHash = "tag"

func TestRequestedSpan(t *testing.T) {
	t.Parallel()
	const size = 100
	for value, want := range map[string]span{
		"bytes=0-9":                              {0, 10},
		"bytes=0-0":                              {0, 1},
		"bytes=99-99":                            {99, 1},
		"bytes=90-":                              {90, 10},
		"bytes=0-":                               {0, 100},
		"bytes=50-1000":                          {50, 50},
		"bytes=-1":                               {99, 1},
		"bytes=-1000":                            {0, 100},
		"BYTES=\t5-9":                            {5, 5},
		"bytes=5-9,":                             {5, 5},
		"bytes=007-9":                            {7, 3},
		"bytes=1-" + strings.Repeat("9", 40):     {1, 99},
		"bytes=-" + strings.Repeat("9", 40):      {0, 100},
		"bytes=-" + "9223372036854775807":        {0, 100},
		"bytes=1-" + "9223372036854775807":       {1, 99},
		"bytes=100-":                             {},
		"bytes=100-200":                          {},
		"bytes=-0":                               {},
		"bytes=" + strings.Repeat("9", 40) + "-": {},
	} {
		got, partial, err := requestedSpan(http.Header{"Range": {value}}, rangeHash, size)
		var none unsatisfiable
		if want == (span{}) {
			if !errors.As(err, &none) || none.size != size {
				t.Errorf("%q: %v, %v", value, got, err)
			}
		} else if err != nil || !partial || got != want {
			t.Errorf("%q: %v, %v, %v; want %v", value, got, partial, err, want)
		}
	}
}

// A Range that is not one satisfiable part is ignored.
func TestWholeSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header http.Header
		size   int64
	}{
		{http.Header{}, 100},
		{http.Header{"Range": {"bytes=0-1,5-6"}}, 100},
		{http.Header{"Range": {"bytes=0-1, 200-"}}, 100},
		{http.Header{"Range": {"bytes=0-1", "bytes=5-6"}}, 100},
		{http.Header{"Range": {"lines=0-1"}}, 100},
		{http.Header{"Range": {"bytes"}}, 100},
		{http.Header{"Range": {"bytes="}}, 100},
		{http.Header{"Range": {"bytes=-"}}, 100},
		{http.Header{"Range": {"bytes=5-4"}}, 100},
		{http.Header{"Range": {"bytes=a-b"}}, 100},
		{http.Header{"Range": {"bytes=+1-2"}}, 100},
		{http.Header{"Range": {"bytes=1--2"}}, 100},
		{http.Header{"Range": {"bytes=--2"}}, 100},
		{http.Header{"Range": {"bytes=1-2-3"}}, 100},
		{http.Header{"Range": {"bytes=0x1-2"}}, 100},
		{http.Header{"Range": {"bytes=0-"}}, 0},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {`"other"`}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {`W/"tag"`}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {`"tag-gzip"`}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {`"tag", "tag"`}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {`"tag"`, `"tag"`}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {"tag"}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {""}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {"*"}}, 100},
		{http.Header{"Range": {"bytes=0-1"}, "If-Range": {"Sat, 21 Nov 2026 09:34:21 GMT"}}, 100},
	} {
		if got, partial, err := requestedSpan(c.header, rangeHash, c.size); got != (span{0, c.size}) || partial ||
			err != nil {
			t.Errorf("%v: %v, %v, %v", c.header, got, partial, err)
		}
	}
	h := http.Header{"Range": {"bytes=0-1"}, "If-Range": {`"` + rangeHash + `"`}}
	if got, partial, err := requestedSpan(h, rangeHash, 100); got != (span{0, 2}) || !partial || err != nil {
		t.Errorf("If-Range of the content itself: %v, %v, %v", got, partial, err)
	}
}

func TestContentRange(t *testing.T) {
	t.Parallel()
	if got := (span{10, 5}).contentRange(100); got != "bytes 10-14/100" {
		t.Error(got)
	}
}
