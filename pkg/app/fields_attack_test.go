package app

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"
)

// instance is what differs from one problem to the next.
var instance = regexp.MustCompile(`"instance":"[^"]*"`)

// Whatever a caller sends about a field that they may not read, right guesses and wrong ones get the same reply.
func TestRepliesDoNotDependOnFieldsThatAreHidden(t *testing.T) {
	f := newFieldFixture(t)
	person := "/people/" + f.person
	photos := "/binary/People/" + f.person + "/photos"
	upload := "/binary/upload/People/" + f.person + "/photos"
	sum := sha256.Sum256([]byte("the-photo"))
	right, wrong := hex.EncodeToString(sum[:]), strings.Repeat("0", 64)
	f.text("ada", 200, "GET", photos+"/0", "", "If-None-Match", `"`+wrong+`"`)
	header, _ := f.response("bob", 200, "GET", person, "")
	tag := header.Get("Etag")
	type request struct {
		method, path, body string
		headers            []string
	}
	png := []string{"Content-Type", "image/png"}
	for name, pair := range map[string][2]request{
		"the hash of a file to delete": {{"DELETE", photos + "/0/" + right, "", nil},
			{"DELETE", photos + "/0/" + wrong, "", nil}},
		"the number of files": {{"PUT", upload + "/0", "x", png}, {"PUT", upload + "/7", "x", png}},
		"a file and its hash": {{"GET", photos + "/0", "", []string{"If-None-Match", `"` + right + `"`}},
			{"GET", photos + "/0", "", []string{"If-None-Match", `"` + wrong + `"`}}},
		"a file and its If-Match": {{"GET", photos + "/0", "", []string{"If-Match", `"` + right + `"`}},
			{"GET", photos + "/0", "", []string{"If-Match", `"` + wrong + `"`}}},
		"a revision of an upload": {{"PUT", upload + "/add", "x", append([]string{"If-Match", tag}, png...)},
			{"PUT", upload + "/add", "x", append([]string{"If-Match", `"1"`}, png...)}},
		"the digest of a file": {{"PUT", upload + "/0", "the-photo", png}, {"PUT", upload + "/0", "another!!", png}},
		"a value": {{"PUT", person, `{"diary":"the-diary"}`, nil},
			{"PUT", person, `{"diary":"other"}`, nil}},
		"a value at a revision": {{"PUT", person, `{"diary":"the-diary"}`, []string{"If-Match", tag}},
			{"PUT", person, `{"diary":"other"}`, []string{"If-Match", `"1"`}}},
		"a value to merge": {{"PATCH", person, `{"diary":"the-diary"}`, nil}, {"PATCH", person, `{"diary":null}`, nil}},
		"a test of a JSON patch": {
			{"PATCH", person, `[{"op":"test","path":"/phone","value":"the-phone"}]`,
				[]string{"Content-Type", "application/json-patch+json"}},
			{"PATCH", person, `[{"op":"test","path":"/phone","value":"other"}]`,
				[]string{"Content-Type", "application/json-patch+json"}},
		},
		"a filter": {{"GET", "/people?filter=phone==%22the-phone%22", "", nil},
			{"GET", "/people?filter=phone==%22other%22", "", nil}},
		"a range": {{"GET", "/people?filter=team==%22x%22%26%26salary>%22a%22", "", nil},
			{"GET", "/people?filter=team==%22x%22%26%26salary>%22z%22", "", nil}},
		"a prefix": {{"GET", "/people?filter=phone.startsWith(%22the%22)", "", nil},
			{"GET", "/people?filter=phone.startsWith(%22x%22)", "", nil}},
		"a field that is a record of files": {{"GET", "/people?filter=photos==null", "", nil},
			{"GET", "/people?filter=photos==1", "", nil}},
	} {
		for _, caller := range []string{"bob", "nobody"} {
			var replies [2]string
			for i, r := range pair {
				status, text := f.ask(caller, r.method, r.path, r.body, r.headers...)
				f.header.Del("Date")
				f.header.Del("X-Request-Id")
				text = instance.ReplaceAllString(text, "")
				for _, guess := range []string{"/7", "/0", right, wrong} {
					text = strings.ReplaceAll(text, guess, "")
				}
				replies[i] = strings.Join([]string{text, f.header.Get("Etag"), f.header.Get("Content-Type")}, " ")
				if status < 400 || status > 499 {
					t.Errorf("%s by %s: %d", name, caller, status)
				}
			}
			if replies[0] != replies[1] {
				t.Errorf("%s by %s reveals something: %s\n%s", name, caller, replies[0], replies[1])
			}
		}
	}
	for _, prefer := range []string{"return=representation", "return=minimal", "wait=60, return=representation"} {
		if text := f.text("bob", 200, "PUT", person, `{"team":"x"}`, "Prefer", prefer); strings.Contains(text, "the-") {
			t.Errorf("Prefer: %s shows %s", prefer, text)
		}
	}
	if page := f.text("ada", 200, "GET", "/people?sort=team&limit=1", ""); strings.Contains(page, `"cursor"`) {
		t.Errorf("a page of one of one object has a cursor: %s", page)
	}
	f.text("bob", 201, "POST", "/people", `{"team":"x","phone":"of-bob"}`)
	page := f.text("ada", 200, "GET", "/people?sort=team&limit=1", "")
	f.text("bob", 400, "GET", "/people?sort=team&limit=1&cursor="+field(page, "cursor")+"x", "")
}
