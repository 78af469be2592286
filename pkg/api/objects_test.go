package api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var quotedNumber = regexp.MustCompile(`^"[1-9][0-9]*"$`)

func TestCreate(t *testing.T) {
	f := start(t)
	r := f.do("POST", "/books", `{"uuid":"emma","title":"Emma","secret":"x","_internal":1,"created":"never"}`).want(201).
		header("Location", "/books/emma").header("Content-Type", "application/json").header("Cache-Control", "no-store")
	if !quotedNumber.MatchString(r.Header.Get("Etag")) {
		t.Errorf("no revision in ETag: %q", r.Header.Get("Etag"))
	}
	var o map[string]any
	r.json(&o)
	if o["uuid"] != "emma" || o["title"] != "Emma" || o["created"] == "never" || o["created"] != o["updated"] {
		t.Errorf("not the object as stored: %s", r.body)
	}
	if o["secret"] != nil || o["_internal"] != nil {
		t.Errorf("a field that is the server's: %s", r.body)
	}
	f.do("GET", r.Header.Get("Location"), "").want(200).header("Etag", r.Header.Get("Etag"))
	f.do("POST", "/books", `{"uuid":"emma"}`).want(409).says("emma")
}

func TestCreateWithoutUUID(t *testing.T) {
	f := start(t)
	r := f.do("POST", "/books", `{"title":"Emma"}`).want(201)
	v7 := regexp.MustCompile(`^/books/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !v7.MatchString(r.Header.Get("Location")) {
		t.Errorf("Location %q", r.Header.Get("Location"))
	}
}

func TestCreateIfNoneMatch(t *testing.T) {
	f := start(t)
	f.do("POST", "/books", `{"uuid":"emma"}`, "If-None-Match", "*").want(201)
	f.do("POST", "/books", `{"uuid":"emma"}`, "If-None-Match", "*").want(412)
	f.do("POST", "/books", `{"uuid":"x"}`, "If-None-Match", `"1"`).want(400)
}

func TestGet(t *testing.T) {
	f := start(t)
	tag := f.create("a@b+c.d_e-f")
	for _, path := range []string{"/books/a@b+c.d_e-f", "/books/a%40b%2Bc%2Ed_e-f"} {
		r := f.do("GET", path, "").want(200).
			header("Etag", tag).header("Content-Type", "application/json").header("Cache-Control", "private, no-cache")
		if !strings.Contains(r.body, `"title":"Emma"`) || r.ContentLength != int64(len(r.body)) {
			t.Errorf("%d bytes: %s", r.ContentLength, r.body)
		}
		head := f.do("HEAD", path, "").want(200).header("Etag", tag)
		if head.body != "" || head.ContentLength != r.ContentLength {
			t.Errorf("HEAD: %q, Content-Length %d", head.body, head.ContentLength)
		}
	}
	f.do("GET", "/books/none", "").want(404).says("none")
	f.do("HEAD", "/books/none", "").want(404)
}

func TestGetConditions(t *testing.T) {
	f := start(t)
	tag := f.create("emma")
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"If-None-Match", tag, 304},
		{"If-None-Match", "W/" + tag, 304},
		{"If-None-Match", `"1", W/"x",` + tag, 304},
		{"If-None-Match", "*", 304},
		{"If-None-Match", `"1"`, 200},
		{"If-None-Match", `""`, 200},
		{"If-None-Match", strings.Trim(tag, `"`), 400},
		{"If-None-Match", `"1`, 400},
		{"If-None-Match", `*, "1"`, 400},
		{"If-None-Match", `"1" "2"`, 400},
		{"If-Match", tag, 200},
		{"If-Match", "*", 200},
		{"If-Match", "W/" + tag, 412},
		{"If-Match", `"1"`, 412},
		{"If-Match", "x", 400},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := f.do(method, "/books/emma", "", c.name, c.value).want(c.status)
			if c.status == 304 {
				r.header("Etag", tag).header("Cache-Control", "private, no-cache")
				if r.body != "" || r.Header.Get("Content-Type") != "" {
					t.Errorf("304 with a body or its type: %q", r.body)
				}
			}
		}
	}
	f.do("GET", "/books/emma", "", "If-None-Match", `"1"`, "If-None-Match", tag).want(304)
}

func TestUpdate(t *testing.T) {
	f := start(t)
	tag := f.do("POST", "/books", `{"uuid":"emma","title":"Emma","by":{"first":"Jane","last":"Austen"},"year":1}`).want(201).Header.Get("Etag")

	r := f.do("PUT", "/books/emma", `{"uuid":"other","year":1815,"by":{"last":"A."}}`).want(200).header("Cache-Control", "no-store")
	if !strings.Contains(r.body, `"by":{"last":"A."}`) || !strings.Contains(r.body, `"title":"Emma"`) ||
		!strings.Contains(r.body, `"uuid":"emma"`) || !strings.Contains(r.body, `"year":1815`) {
		t.Errorf("PUT replaces the fields given, and no others: %s", r.body)
	}
	if r.Header.Get("Etag") == tag || !quotedNumber.MatchString(r.Header.Get("Etag")) {
		t.Errorf("ETag %q after %q", r.Header.Get("Etag"), tag)
	}
	for _, media := range []string{"application/merge-patch+json", "application/json"} {
		r = f.do("PATCH", "/books/emma", `{"by":{"first":"J."},"year":null}`, "Content-Type", "", "Content-Type", media).want(200)
		if !strings.Contains(r.body, `"first":"J."`) || !strings.Contains(r.body, `"last":"A."`) || strings.Contains(r.body, "1815") {
			t.Errorf("PATCH merges, and null removes: %s", r.body)
		}
	}
	f.do("PUT", "/books/none", `{}`).want(404)
	f.do("PATCH", "/books/none", `{}`).want(404)
	f.do("PUT", "/books/emma", `[]`).want(400)
	f.do("PATCH", "/books/emma", `null`).want(400)
}

func TestDelete(t *testing.T) {
	f := start(t)
	f.create("emma")
	if r := f.do("DELETE", "/books/emma", "").want(204); r.body != "" {
		t.Errorf("204 with a body: %q", r.body)
	}
	f.do("GET", "/books/emma", "").want(404)
	f.do("DELETE", "/books/emma", "").want(404)
	f.do("POST", "/books", `{"uuid":"emma"}`).want(201)
}

func TestWriteConditions(t *testing.T) {
	f := start(t)
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			for _, c := range []struct {
				name, value string // TAG is the object's
				status      int
			}{
				{"If-Match", `TAG`, 200},
				{"If-Match", `*`, 200},
				{"If-Match", `"1", TAG`, 200},
				{"If-Match", ` "x" ,, TAG `, 200},
				{"If-Match", `"1"`, 412},
				{"If-Match", `"1","2"`, 412},
				{"If-Match", `W/TAG`, 412},
				{"If-Match", `"x"`, 412},
				{"If-Match", `""`, 412},
				{"If-Match", `"0"`, 412},
				{"If-Match", `"99999999999999999999"`, 412},
				{"If-Match", ``, 400},
				{"If-Match", `,`, 400},
				{"If-Match", `17`, 400},
				{"If-Match", `"17`, 400},
				{"If-Match", `*,TAG`, 400},
				{"If-Match", `w/TAG`, 400},
				{"If-Match", strings.Repeat(`"1",`, 65), 400},
				{"If-None-Match", `*`, 412},
				{"If-None-Match", `"1"`, 400},
			} {
				f.T = t
				tag := f.create("emma")
				status := c.status
				if status == 200 && method == "DELETE" {
					status = 204
				}
				f.doWith(method, "/books/emma", c.name, strings.ReplaceAll(c.value, "TAG", tag)).want(status)
				if status != 204 {
					f.do("GET", "/books/emma", "").want(200)
					f.do("DELETE", "/books/emma", "").want(204)
				}
			}
			f.doWith(method, "/books/none", "If-Match", `*`).want(404)
			f.doWith(method, "/books/none", "If-Match", `"x"`).want(404)
			f.doWith(method, "/books/none", "If-None-Match", `*`).want(404)
		})
	}
}

// doWith sends an empty object with one header, even an empty one.
func (f *front) doWith(method, path, name, value string) reply {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.URL+path, strings.NewReader("{}"))
	f.must(err)
	r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	resp, err := f.Client().Do(r)
	f.must(err)
	return f.read(resp)
}

// Of many who change what they read, exactly one succeeds at each revision.
func TestConcurrentUpdates(t *testing.T) {
	f := start(t)
	tag := f.create("emma")
	statuses := make(chan int, 8)
	for range cap(statuses) {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "PUT", f.URL+"/books/emma", strings.NewReader(`{"year":1}`))
			if err != nil {
				panic(err)
			}
			r.Header.Set("If-Match", tag)
			resp, err := f.Client().Do(r)
			if err != nil {
				panic(err)
			}
			_ = resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	count := map[int]int{}
	for range cap(statuses) {
		count[<-statuses]++
	}
	if count[200] != 1 || count[412] != cap(statuses)-1 {
		t.Errorf("statuses: %v", count)
	}
}
