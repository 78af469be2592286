package httpkit

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/store"
)

// What a proxy makes of a tag is that tag, and no other one: of views, above all, whose hashes may end in anything.
func TestACodedTagIsThatOfItsOwnReply(t *testing.T) {
	t.Parallel()
	objects := []store.Stored{{Revision: 17}, {Revision: 170}}
	for i := range 200 {
		objects = append(objects, store.Stored{Revision: 17, Body: fmt.Append(nil, i), ByCaller: true})
	}
	for _, o := range objects {
		for _, coding := range []string{"-gzip", "--gzip", "-br", "--br", "-zstd", "-deflate"} {
			coded := strings.TrimSuffix(ETag(o), `"`) + coding + `"`
			for _, header := range []string{coded, "W/" + coded, `"x", ` + coded} {
				tags, err := IfNoneMatch(http.Header{"If-None-Match": {header}})
				if err != nil || !tags.MatchView(o) || !tags.MatchObject(o) ||
					fmt.Sprint(tags.revisions()) != fmt.Sprint([]uint64{o.Revision}) {
					t.Errorf("%s is not %s: %v", header, ETag(o), err)
				}
				for _, other := range objects {
					if ETag(other) != ETag(o) && tags.MatchView(other) ||
						other.Revision != o.Revision && tags.MatchObject(other) {
						t.Errorf("%s is %s", header, ETag(other))
					}
				}
			}
		}
	}
	// A view that happens to end like a coding is a view, and what would be left of it is none.
	view := base64.RawURLEncoding.EncodeToString(make([]byte, viewBytes))
	for _, coding := range codings {
		whole := "17-" + view[len(coding):] + coding
		tags := Tags{Given: true, list: []tag{{value: whole}}}
		if !tags.Match(whole) || !tags.MatchObject(store.Stored{Revision: 17}) || tags.Match("17-"+view) ||
			tags.MatchObject(store.Stored{Revision: 1}) {
			t.Errorf("%s", whole)
		}
	}
	for _, other := range []string{"17gzip", "17-GZIP", "17-gzip-gzip", "17-gzip-br", "17---gzip", "-gzip", "--gzip",
		"17-x", "017-gzip", "0-gzip"} {
		tags := Tags{Given: true, list: []tag{{value: other}}}
		if tags.Match("17") || tags.MatchObject(store.Stored{Revision: 17}) ||
			tags.Match("") && other != "-gzip" && other != "--gzip" {
			t.Errorf("%s", other)
		}
	}
}

func TestHeadersForServeContent(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`"a"`: `"a"`, `"a-gzip"`: `"a"`, `"b", "a--gzip"`: `"a"`, `"b-gzip"`: `"b-gzip"`, `*`: `*`,
		`nonsense`: `nonsense`, `"b", "a"`: `"b", "a"`,
	} {
		for _, name := range []string{"If-Match", "If-None-Match"} {
			r := &http.Request{Header: http.Header{name: {given}, "Range": {"bytes=0-1"}}}
			got := ForServeContent(r, "a")
			if got.Header.Get(name) != want || r.Header.Get(name) != given || r.Header.Get("Range") == "" {
				t.Errorf("%s: %s became %q", name, given, got.Header)
			}
			if ranged := got.Header.Get("Range") != ""; ranged != (name == "If-None-Match" || given == "*" ||
				strings.Contains(given, `"a"`)) {
				t.Errorf("%s: %s: the range is kept: %v", name, given, ranged)
			}
		}
	}
	weak := func(name string) string {
		r := &http.Request{Header: http.Header{name: {`W/"a-gzip"`}}}
		return ForServeContent(r, "a").Header.Get(name)
	}
	if got := []string{weak("If-Match"), weak("If-None-Match")}; got[0] != `W/"a-gzip"` || got[1] != `"a"` {
		t.Errorf("a weak tag became %q", got)
	}
}
