package console_test

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/binary"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// startShelf is a library whose books have covers, and hidden files.
func startShelf(t *testing.T, types ...string) *library {
	t.Helper()
	contents := binary.ContentsOptions("Contents")
	o := stores(t,
		nil, store.Options{Name: "Books", IndexBinaries: true, Binaries: []string{"covers", "margin"},
			Private: []string{"margin"}}, contents)
	storage, err := filestorage.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = storage.Close() })
	o.Stores = o.Stores[:1]
	o.Files = []*binary.Service{binary.New(binary.Options{
		Name: "Covers", Set: o.Set, Contents: o.Set.Store("Contents"), Storage: storage,
		Properties: map[string][]string{"Books": {"covers", "margin"}}, MaxSize: 1 << 20,
		Types: types,
	})}
	o.Thumbnails = binary.NewThumbnails(64<<20, 1)
	return &library{fixture: start(t, console.Options{Objects: o}), set: o.Set}
}

// upload sends a form with a file.
func (l *library) upload(token, path, name, kind, content string) apitest.Reply {
	l.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="` + name + `"`}, "Content-Type": {kind}})
	l.Must(err)
	_, err = part.Write([]byte(content))
	l.Must(err)
	l.Must(w.Close())
	return l.send("POST", token, path, b.String(), "Content-Type", "", "Content-Type", w.FormDataContentType())
}

// The page of an object says which files can be added, and so does the refusal of another one.
func TestTheTypesOfFilesAreShown(t *testing.T) {
	t.Parallel()
	l := startShelf(t, "image/*", "application/pdf")
	_, err := l.set.Store("Books").Save(t.Context(), object.Object{}, "emma")
	l.Must(err)
	shows(t, is(t, l.get(l.Admin, emma), http.StatusOK), `accept="image/*, application/pdf"`)
	shows(t, is(t, l.upload(l.Admin, emma+"/files/covers", "a.png", "image/png", "<!DOCTYPE html>"),
		http.StatusUnsupportedMediaType), "by its content the file is text/html", "image/*, application/pdf")
	leads(t, l.upload(l.Admin, emma+"/files/covers", "a.pdf", "image/png", "%PDF-1.7"), emma)
}

func TestFilesOfObjects(t *testing.T) {
	t.Parallel()
	l := startShelf(t)
	_, err := l.set.Store("Books").Save(t.Context(), object.Object{}, "emma")
	l.Must(err)
	const covers = emma + "/files/covers"
	const script = "<script>alert(1)</script>"

	is(t, l.upload("", covers, "a.html", "text/html", script), http.StatusSeeOther)
	is(t, l.upload(l.User, covers, "a.html", "text/html", script), http.StatusForbidden)
	is(t, l.upload(l.Admin, covers, "", "text/html", script), http.StatusBadRequest)
	is(t, l.upload(l.Admin, covers, "large", "text/plain", strings.Repeat("x", 1<<20+1)),
		http.StatusRequestEntityTooLarge)
	for _, property := range []string{"margin", "other", "_binaries"} {
		// What is private is refused as what is not there.
		shows(t, is(t, l.upload(l.Admin, emma+"/files/"+property, "a", "text/plain", "x"), http.StatusNotFound),
			"Books has no files "+property)
	}
	if body := string(l.read("Books", "emma").Body); strings.Contains(body, "covers") {
		t.Fatalf("a file was added: %s", body)
	}
	leads(t, l.upload(l.Admin, covers, "<b>.html", "text/html", script), emma)

	r := is(t, l.get(l.Admin, emma), http.StatusOK)
	shows(t, r, "&lt;b&gt;.html", "text/html, 25 B")
	if strings.Contains(r.Text, "margin") {
		t.Error("private files are shown")
	}
	is(t, l.get("", covers+"/0"), http.StatusSeeOther)
	is(t, l.get(l.User, covers+"/0"), http.StatusForbidden)
	is(t, l.get(l.Admin, covers+"/1"), http.StatusNotFound)
	r = is(t, l.get(l.Admin, covers+"/0"), http.StatusOK)
	// What users upload is never a page of the console's origin.
	r.HasHeader("Content-Security-Policy", "default-src 'none'; sandbox").HasHeader("Content-Type",
		"application/octet-stream")
	if disposition := r.Header.Get("Content-Disposition"); r.Text != script ||
		!strings.HasPrefix(disposition, "attachment;") {
		t.Errorf("%s %q", disposition, r.Text)
	}

	hash := regexp.MustCompile(`name="hash" value="([0-9a-f]{64})"`).FindStringSubmatch(l.get(l.Admin, emma).Text)
	if hash == nil {
		t.Fatal("the page has no hash")
	}
	is(t, l.post(l.Admin, covers+"/0/delete", form("hash", strings.Repeat("0", 64))), http.StatusPreconditionFailed)
	is(t, l.post(l.User, covers+"/0/delete", form("hash", hash[1])), http.StatusForbidden)
	leads(t, l.post(l.Admin, covers+"/0/delete", form("hash", hash[1])), emma)
	is(t, l.get(l.Admin, covers+"/0"), http.StatusNotFound)
}
