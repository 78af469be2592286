package objects_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
)

var quotedNumber = regexp.MustCompile(`^"[1-9][0-9]*"$`)

func TestCreate(t *testing.T) {
	f := apitest.Start(t)
	r := f.Do("POST", "/books",
		`{"uuid":"emma","title":"Emma","secret":"x","_internal":1,"created":"never"}`).Want(201).
		HasHeader("Location", "/books/emma").HasHeader("Content-Type", "application/json").HasHeader("Cache-Control",
		"no-store")
	if !quotedNumber.MatchString(r.Header.Get("Etag")) {
		t.Errorf("no revision in ETag: %q", r.Header.Get("Etag"))
	}
	var o map[string]any
	r.JSON(&o)
	if o["uuid"] != "emma" || o["title"] != "Emma" || o["created"] == "never" || o["created"] != o["updated"] {
		t.Errorf("not the object as stored: %s", r.Text)
	}
	if o["secret"] != nil || o["_internal"] != nil {
		t.Errorf("a field that is the server's: %s", r.Text)
	}
	f.Do("GET", r.Header.Get("Location"), "").Want(200).HasHeader("Etag", r.Header.Get("Etag"))
	f.Do("POST", "/books", `{"uuid":"emma"}`).Want(409).Says("emma")
}

func TestCreateWithoutUUID(t *testing.T) {
	f := apitest.Start(t)
	r := f.Do("POST", "/books", `{"title":"Emma"}`).Want(201)
	v7 := regexp.MustCompile(`^/books/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if !v7.MatchString(r.Header.Get("Location")) {
		t.Errorf("Location %q", r.Header.Get("Location"))
	}
}

func TestCreateIfNoneMatch(t *testing.T) {
	f := apitest.Start(t)
	f.Do("POST", "/books", `{"uuid":"emma"}`, "If-None-Match", "*").Want(201)
	f.Do("POST", "/books", `{"uuid":"emma"}`, "If-None-Match", "*").Want(412)
	f.Do("POST", "/books", `{"uuid":"x"}`, "If-None-Match", `"1"`).Want(400)
	for _, match := range []string{`"1"`, "*"} {
		f.Do("POST", "/books", `{"uuid":"x"}`, "If-Match", match).Want(400).Says("If-Match")
	}
	f.Do("GET", "/books/x", "").Want(404)
}

func TestGet(t *testing.T) {
	f := apitest.Start(t)
	tag := f.Create("a@b+c.d_e-f")
	for _, path := range []string{"/books/a@b+c.d_e-f", "/books/a%40b%2Bc%2Ed_e-f"} {
		r := f.Do("GET", path, "").Want(200).
			HasHeader("Etag", tag).HasHeader("Content-Type", "application/json").HasHeader("Cache-Control",
			"private, no-cache")
		if !strings.Contains(r.Text, `"title":"Emma"`) || r.ContentLength != int64(len(r.Text)) {
			t.Errorf("%d bytes: %s", r.ContentLength, r.Text)
		}
		head := f.Do("HEAD", path, "").Want(200).HasHeader("Etag", tag)
		if head.Text != "" || head.ContentLength != r.ContentLength {
			t.Errorf("HEAD: %q, Content-Length %d", head.Text, head.ContentLength)
		}
	}
	f.Do("GET", "/books/none", "").Want(404).Says("none")
	f.Do("HEAD", "/books/none", "").Want(404)
}

// TestGetFields: the tag of a part differs from that of the whole, and from that of another part; each names the
// revision, so that a write can be conditional on it.
func TestGetFields(t *testing.T) {
	f := apitest.Start(t)
	whole := f.Create("emma")
	r := f.Do("GET", "/books/emma?fields=title", "").Want(200)
	tag := r.Header.Get("Etag")
	if r.Text != `{"uuid":"emma","title":"Emma"}` || tag == whole ||
		!strings.HasPrefix(tag, strings.TrimSuffix(whole, `"`)+"-") {
		t.Errorf("%s with the tag %s, the whole has %s", r.Text, tag, whole)
	}
	f.Do("HEAD", "/books/emma?fields=title", "").Want(200).HasHeader("Etag", tag)
	f.Do("GET", "/books/emma?fields=title", "", "If-None-Match", tag).Want(304)
	f.Do("GET", "/books/emma?fields=title", "", "If-None-Match", whole).Want(200)
	f.Do("GET", "/books/emma?fields=year", "", "If-None-Match", tag).Want(200)
	f.Do("GET", "/books/emma", "", "If-None-Match", tag).Want(200)
	f.Do("GET", "/books/emma", "", "If-None-Match", whole).Want(304)
	f.Do("GET", "/books/emma?fields=a.b.c", "").Want(400).Says("one level")
	f.Do("GET", "/books/emma?field=title", "").Want(400).Says("unknown; known are fields")
	f.Do("PUT", "/books/emma", `{"year":1815}`, "If-Match", tag).Want(200)
	f.Do("PUT", "/books/emma", `{"year":1816}`, "If-Match", tag).Want(412)
}

func TestGetConditions(t *testing.T) {
	f := apitest.Start(t)
	tag := f.Create("emma")
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
		{"If-Match", strings.Join(apitest.Coded(`"1"`), ","), 412},
		{"If-None-Match", strings.Join(apitest.Coded(`"1"`), ","), 200},
		{"If-None-Match", apitest.Coded(tag)[0], 304},
		{"If-None-Match", apitest.Coded(tag)[1], 304},
		{"If-None-Match", apitest.Coded(tag)[2], 304},
		{"If-None-Match", strings.Join(apitest.Coded(tag)[3:], ","), 304},
		{"If-None-Match", apitest.Weakened(tag)[1], 304},
		{"If-Match", strings.Join(apitest.Weakened(tag), ","), 412},
		{"If-Match", apitest.Weakened(tag)[0] + "," + apitest.Coded(tag)[0], 200},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r := f.Do(method, "/books/emma", "", c.name, c.value).Want(c.status)
			if c.status == 304 {
				r.HasHeader("Etag", tag).HasHeader("Cache-Control", "private, no-cache")
				if r.Text != "" || r.Header.Get("Content-Type") != "" {
					t.Errorf("304 with a body or its type: %q", r.Text)
				}
			}
		}
	}
	f.Do("GET", "/books/emma", "", "If-None-Match", `"1"`, "If-None-Match", tag).Want(304)
}

func TestUpdate(t *testing.T) {
	f := apitest.Start(t)
	tag := f.Do("POST", "/books",
		`{"uuid":"emma","title":"Emma","by":{"first":"Jane","last":"Austen"},"year":1}`).Want(201).Header.Get("Etag")

	r := f.Do("PUT", "/books/emma",
		`{"uuid":"other","year":1815,"by":{"last":"A."}}`).Want(200).HasHeader("Cache-Control", "no-store")
	if !strings.Contains(r.Text, `"by":{"last":"A."}`) || !strings.Contains(r.Text, `"title":"Emma"`) ||
		!strings.Contains(r.Text, `"uuid":"emma"`) || !strings.Contains(r.Text, `"year":1815`) {
		t.Errorf("PUT replaces the fields given, and no others: %s", r.Text)
	}
	if r.Header.Get("Etag") == tag || !quotedNumber.MatchString(r.Header.Get("Etag")) {
		t.Errorf("ETag %q after %q", r.Header.Get("Etag"), tag)
	}
	for _, media := range []string{"application/merge-patch+json", "application/json"} {
		r = f.Do("PATCH", "/books/emma", `{"by":{"first":"J."},"year":null}`, "Content-Type", "", "Content-Type",
			media).Want(200)
		if !strings.Contains(r.Text, `"first":"J."`) || !strings.Contains(r.Text, `"last":"A."`) ||
			strings.Contains(r.Text, "1815") {
			t.Errorf("PATCH merges, and null removes: %s", r.Text)
		}
	}
	f.Do("PUT", "/books/none", `{}`).Want(404)
	f.Do("PATCH", "/books/none", `{}`).Want(404)
	f.Do("PUT", "/books/emma", `[]`).Want(400)
	f.Do("PATCH", "/books/emma", `null`).Want(400)
}

func TestDelete(t *testing.T) {
	f := apitest.Start(t)
	f.Create("emma")
	if r := f.Do("DELETE", "/books/emma", "").Want(204).HasHeader("Cache-Control", "no-store"); r.Text != "" {
		t.Errorf("204 with a body: %q", r.Text)
	}
	f.Do("GET", "/books/emma", "").Want(404)
	f.Do("DELETE", "/books/emma", "").Want(404)
	f.Do("POST", "/books", `{"uuid":"emma"}`).Want(201)
}

func TestWriteConditions(t *testing.T) {
	f := apitest.Start(t)
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
				{"If-Match", `W/"1"`, 412},
				{"If-Match", `CODED0`, 200},
				{"If-Match", `CODED1`, 200},
				{"If-Match", `CODED2`, 200},
				{"If-Match", `CODED3`, 200},
				{"If-Match", `CODED4`, 200},
				{"If-Match", `W/CODED0`, 412},
				{"If-Match", `W/TAG, TAG`, 200},
				{"If-Match", `"1-gzip", "1--gzip", "1-br"`, 412},
				{"If-Match", `"x-gzip"`, 412},
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
				tag := f.Create("emma")
				status := c.status
				if status == 200 && method == "DELETE" {
					status = 204
				}
				value := strings.ReplaceAll(c.value, "TAG", tag)
				for i, coded := range apitest.Coded(tag) {
					value = strings.ReplaceAll(value, "CODED"+strconv.Itoa(i), coded)
				}
				doWith(f, method, "/books/emma", c.name, value).Want(status)
				if status != 204 {
					f.Do("GET", "/books/emma", "").Want(200)
					f.Do("DELETE", "/books/emma", "").Want(204)
				}
			}
			doWith(f, method, "/books/none", "If-Match", `*`).Want(404)
			doWith(f, method, "/books/none", "If-Match", `"x"`).Want(404)
			doWith(f, method, "/books/none", "If-None-Match", `*`).Want(404)
		})
	}
}

// doWith sends an empty object with one header, even an empty one.
func doWith(f *apitest.Front, method, path, name, value string) apitest.Reply {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, f.URL+path, strings.NewReader("{}"))
	f.Must(err)
	r.Header[http.CanonicalHeaderKey(name)] = []string{value}
	resp, err := f.Client().Do(r)
	f.Must(err)
	return f.Read(resp)
}

// Of many who change what they read, exactly one succeeds at each revision.
func TestConcurrentUpdates(t *testing.T) {
	f := apitest.Start(t)
	tag := f.Create("emma")
	statuses := make(chan int, 8)
	for range cap(statuses) {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "PUT", f.URL+"/books/emma",
				strings.NewReader(`{"year":1}`))
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
