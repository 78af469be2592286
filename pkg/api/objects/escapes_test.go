package objects_test

import (
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit/hardtext"
)

// TestEveryRouteStoresStringsInOneForm, whatever the client's encoder escapes: they are the same in replies and in the
// store.
func TestEveryRouteStoresStringsInOneForm(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	const text = "中文/é<&>\u2028😀\"\\"
	want := string(object.AppendString(nil, text))
	for name, encode := range hardtext.Encoders() {
		uuid := func(way string) string { return strings.ToLower(name) + "-" + way }
		body := func(way string) string {
			return fmt.Sprintf(`{"uuid":%q,%s:%s}`, uuid(way), encode("t/"+text), encode(text))
		}
		f.Do("POST", "/books", body("post")).Want(201)
		f.Do("PUT", "/books/"+uuid("put"), body("put"), "If-None-Match", "*")
		f.Create(uuid("put"))
		f.Do("PUT", "/books/"+uuid("put"), body("put")).Want(200)
		f.Create(uuid("patch"))
		f.Do("PATCH", "/books/"+uuid("patch"), body("patch"), "Content-Type", "application/merge-patch+json").Want(200)
		_, results := batch(f, []string{`POST /books "body":` + body("batch")})
		statuses(f, results, 201)
		if lines := stream(f, "/books", body("stream")+"\n"); len(lines) != 1 || lines[0].Status != 201 {
			t.Errorf("by %s: %+v", name, lines)
		}
		for _, way := range []string{"post", "put", "patch", "batch", "stream"} {
			r := f.Do("GET", "/books/"+uuid(way), "").Want(200)
			stored, err := f.Books.Get(f.Context(), uuid(way))
			f.Must(err)
			member := string(object.AppendString(nil, "t/"+text)) + ":" + want
			if !strings.Contains(r.Text, member) || !strings.Contains(string(stored.Body), member) {
				t.Errorf("by %s, %s: %s, stored as %s", name, way, r.Text, stored.Body)
			}
		}
	}
}

// TestAKeyIsForOneRequestInAnyEncoding: a client that repeats a request in another encoding repeats it.
func TestAKeyIsForOneRequestInAnyEncoding(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	f.Create("emma")
	for _, c := range []struct{ method, path string }{{"POST", "/books"}, {"PUT", "/books/emma"},
		{"PATCH", "/books/emma"}} {
		first := ""
		for name, encode := range hardtext.Encoders() {
			body := `{"title":` + encode("中文/é<&>😀") + `,` + encode("n/é") + `:{` + encode("/") + `:[` + encode("😀") +
				`]}}`
			r := f.Do(c.method, c.path, body, keyHeader, c.method)
			if r.StatusCode >= 300 || first != "" && (r.Text != first || r.Header.Get(replayed) != "true") {
				t.Errorf("%s by %s: %d %s, want %s again", c.method, name, r.StatusCode, r.Text, first)
			}
			first = r.Text
		}
	}
}

// TestTheLargestObjectIsTakenInAnyEncoding: the limit counts what is stored, and a body, or a line, may be as much
// longer as escapes make it.
func TestTheLargestObjectIsTakenInAnyEncoding(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	room := store.MaxObjectSize - len(`{"title":"","uuid":"wholly-put"}`)
	escaped := func(n int) string { return `{"uuid":"wholly-put","title":"` + strings.Repeat(`\u0061`, n) + `"}` }
	f.Do("POST", "/books", escaped(room-100)).Want(201)
	f.Do("PUT", "/books/wholly-put", escaped(room+100)).Want(413)
	chinese := strings.Repeat(`\u4e2d\u6587`, 30_000) // 180 KB of text
	f.Do("POST", "/books", `{"uuid":"chinese","title":"`+chinese+`"}`).Want(201)
	got := stream(f, "/books", strings.ReplaceAll(escaped(room-100), "put", "line")+"\n")
	if len(got) != 1 || got[0].Status != 201 {
		t.Errorf("as a line: %+v", got)
	}
}
