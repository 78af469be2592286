package upgrade

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// write makes the data of testdata anew, with the release: docs/testing.md.
var write = flag.Bool("write", false, "make testdata with the release that release.go names")

// served is the configuration with which the data was written. Nothing in it ever expires.
const served = `data: %s
listen: 127.0.0.1:0
bus: {listen: '127.0.0.1:0', events: {maxAge: 876000h}}
tombstones: 876000h
stores:
  Authors:
    expose: {list: true}
  Books:
    expose: {list: true}
    indexes: [year]
    map: {Authors: {key: author, target: books, fields: "title, year", cascade: true}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
binaries:
  files: {type: FileStorage, map: {Books: [texts]}}
`

// archive is the data folder as a kill has left it, and known what clients knew of it.
const (
	archive = "testdata/data.tar.gz"
	known   = "testdata/known.json"
)

// knowledge is what clients of the release have received.
type knowledge struct {
	Release string            `json:"release"`
	Objects map[string]object `json:"objects"` // by path
	Cursor  string            `json:"cursor"`  // after the first page of the books
	Next    string            `json:"next"`    // the books of the page after it
	EventID string            `json:"eventID"` // of /events
	Event   string            `json:"event"`   // id of the first event after it
	Key     string            `json:"key"`     // of the API
	User    string            `json:"user"`    // uuid
}

type object struct {
	Tag  string `json:"tag"`
	Body string `json:"body"`
}

// The user.
const (
	address  = "ada@example.com"
	password = "a fine password"
)

// visitor is a client of a server.
type visitor struct {
	*testing.T
	server *process.Server
	token  string
}

// send returns the reply, of a GET also one that refuses it.
func (v *visitor) send(method, path, body string, header ...string) (*http.Response, string) {
	v.Helper()
	req, err := http.NewRequestWithContext(v.Context(), method, v.server.URL+path, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if v.token != "" {
		req.Header.Set("Authorization", "Bearer "+v.token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		v.Fatal(err)
	}
	if res.StatusCode/100 != 2 && (method != http.MethodGet || res.StatusCode >= http.StatusInternalServerError) {
		v.Fatalf("%s %s: %s %s", method, path, res.Status, text)
	}
	return res, string(text)
}

// login returns the token of a session.
func (v *visitor) login(form string) string {
	v.Helper()
	res, _ := v.send(http.MethodPost, "/auth/email", form)
	for _, c := range res.Cookies() {
		return c.Value
	}
	v.Fatal("a login has no cookie")
	return ""
}

// get returns what is at a path; the zero object when nothing is.
func (v *visitor) get(path string) object {
	v.Helper()
	res, body := v.send(http.MethodGet, path, "")
	if res.StatusCode != http.StatusOK {
		return object{}
	}
	return object{Tag: res.Header.Get("ETag"), Body: body}
}

// event returns the first event of a book after an id: the id to resume with, and its own.
func (v *visitor) event(after string) (resume, id string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), kit.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.server.URL+"/events?store=Books", nil)
	if err != nil {
		v.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", after)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	lines, name := bufio.NewScanner(res.Body), ""
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			resume = value
		case "event":
			name = value
		case "data":
			if strings.HasPrefix(name, "Store.") {
				return resume, v.text(value, "id")
			}
			if name == "reset" {
				return resume, name
			}
		}
	}
	v.Fatalf("no event follows: %v", lines.Err())
	return "", ""
}

// text returns a member of JSON that is a text.
func (v *visitor) text(body, name string) string {
	v.Helper()
	var members map[string]json.RawMessage
	var text string
	if err := json.Unmarshal([]byte(body), &members); err != nil || json.Unmarshal(members[name], &text) != nil ||
		text == "" {
		v.Fatalf("%s has no %s", body, name)
	}
	return text
}

// items returns the objects of a page of books after a cursor, and the cursor after it, "" for none; nothing if the
// cursor is refused.
func (v *visitor) items(cursor string) (items, next string) {
	v.Helper()
	var page struct {
		Items  json.RawMessage
		Cursor string
	}
	res, body := v.send(http.MethodGet, "/books?sort=year&limit=2&cursor="+cursor, "")
	if res.StatusCode == http.StatusBadRequest && strings.Contains(body, "cursor: invalid") {
		return "", ""
	}
	if err := json.Unmarshal([]byte(body), &page); err != nil || res.StatusCode != http.StatusOK {
		v.Fatalf("the page is %s", body)
	}
	return string(page.Items), page.Cursor
}

var paths = []string{
	"/authors/ada", "/authors/grace", "/books/notes", "/books/letters", "/books/compilers", "/books/gone",
	"/binary/Books/notes/texts/0",
}

// learn has a client write, and returns what it knows in the end.
func (v *visitor) learn() knowledge {
	v.Helper()
	v.token = v.login(fmt.Sprintf(`{"register":true,"login":%q,"password":%q,"address":%q}`, address, password,
		address))
	_, body := v.send(http.MethodPost, "/auth/keys", fmt.Sprintf(`{"name":"upgrade","password":%q}`, password))
	k := knowledge{Release: Release, Objects: map[string]object{}, Key: v.text(body, "token")}
	for _, author := range []string{`{"uuid":"ada","name":"Ada Lovelace"}`, `{"uuid":"grace","name":"Grace Hopper"}`} {
		v.send(http.MethodPost, "/authors", author)
	}
	for _, book := range []string{
		`{"uuid":"notes","author":"ada","title":"Notes","year":1843}`,
		`{"uuid":"letters","author":"ada","title":"Letters","year":1992}`,
		`{"uuid":"compilers","author":"grace","title":"Compilers","year":1952}`,
		`{"uuid":"gone","author":"grace","title":"Gone","year":1960}`,
	} {
		v.send(http.MethodPost, "/books", book, "Prefer", "wait=60")
	}
	v.send(http.MethodPut, "/books/notes", `{"title":"Notes on the Analytical Engine"}`, "Prefer", "wait=60")
	v.send(http.MethodDelete, "/books/gone", "", "Prefer", "wait=60")
	v.send(http.MethodPut, "/binary/upload/Books/notes/texts/add", "The Analytical Engine", "Content-Type",
		"text/plain", "X-Filename", "engine.txt", "Prefer", "wait=60")
	k.EventID, _ = v.event("0")
	_, k.Event = v.event(k.EventID)
	kit.WaitUntil(v, func() error {
		if body := v.get("/authors/grace").Body; strings.Contains(body, "Gone") ||
			!strings.Contains(body, "Compilers") {
			return errors.New(body)
		}
		return nil
	})
	for _, path := range paths {
		k.Objects[path] = v.get(path)
	}
	_, k.Cursor = v.items("")
	k.Next, _ = v.items(k.Cursor)
	k.User = v.text(v.get("/auth/me").Body, "uuid")
	return k
}

// refilled finds in a log what fills arrays, or computed properties, from the beginning, or has changed objects.
var refilled = regexp.MustCompile(`.*(new or has changed|new or have changed|are filled.* read=[1-9]).*`)

// TestTheDataOfTheReleaseIsKept: a folder that the release wrote, and that was killed, is opened by this version with
// all that its clients knew, and nothing is filled again. What they hold stays valid: passwords, keys, cursors; an id
// of an event, which named none in the release, is a reset.
func TestTheDataOfTheReleaseIsKept(t *testing.T) {
	if *write {
		writeFixture(t)
	}
	text, err := os.ReadFile(known)
	if err != nil {
		t.Fatal(err)
	}
	var k knowledge
	if err := json.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	if k.Release != Release {
		t.Fatalf("testdata is of the release %s, and the last one is %s: make it with go test -C test/chaos "+
			"./upgrade -run TheDataOfTheRelease -write", k.Release, Release)
	}
	data := filepath.Join(t.TempDir(), "data")
	unpack(t, data)
	config := configure(t, data)
	v := &visitor{T: t, server: process.ServePlain(t, config)}
	for path, want := range k.Objects {
		got := v.get(path)
		if strings.HasPrefix(path, "/authors/") {
			// Workers write the same array again, for events that the kill has left in the records.
			got.Tag, want.Tag = "", ""
		}
		if got != want {
			t.Errorf("%s is %+v, and was %+v", path, got, want)
		}
	}
	if got, _ := v.items(k.Cursor); got != k.Next && got != "" {
		t.Errorf("the page after that of the release is %s, and was %s: a cursor with another meaning has to "+
			"be refused", got, k.Next)
	}
	if _, got := v.event(k.EventID); got != k.Event && got != "reset" {
		t.Errorf("what follows the event of the release is %s: it was %s, or is a reset", got, k.Event)
	}
	v.token = k.Key
	if got := v.text(v.get("/auth/me").Body, "uuid"); got != k.User {
		t.Errorf("the user of the key is %s, and was %s", got, k.User)
	}
	v.token = ""
	v.token = v.login(fmt.Sprintf(`{"login":%q,"password":%q}`, address, password))
	v.send(http.MethodPut, "/books/letters", `{"title":"Letters to her mother"}`, "Prefer", "wait=60")
	if got := v.get("/authors/ada").Body; !strings.Contains(got, "Letters to her mother") {
		t.Errorf("the author is %s", got)
	}
	// This release looks for what the one before left out of arrays, and finds nothing there.
	if found := refilled.FindString(v.server.Log()); found != "" {
		t.Errorf("arrays that the release had filled are filled again: %s", found)
	}
	out, failure, exit, err := process.Run(process.Commands(t), "verify", "--config", config)
	if err != nil || exit != 0 {
		t.Errorf("verify: exit %d, %v\n%s%s", exit, err, out, failure)
	}
}

func configure(t *testing.T, data string) string {
	t.Helper()
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, served, data), 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// writeFixture makes testdata with the release.
func writeFixture(t *testing.T) {
	t.Helper()
	program, err := programs.Release(Release)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	server, err := process.Start(program, nil, "--config", configure(t, data))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	v := &visitor{T: t, server: server}
	k := v.learn()
	server.Kill()
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(known, append(text, '\n'), 0o644)); err != nil { //nolint:gosec // it is committed
		t.Fatal(err)
	}
	pack(t, data)
}

// pack writes a folder to the archive. Nothing in it is of this machine.
func pack(t *testing.T, folder string) {
	t.Helper()
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err != nil || entry.IsDir() || name == "belfry.lock" { // which has a token and the name of the machine
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name),
			Size: int64(len(content)), Mode: 0o600}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err := errors.Join(err, w.Close(), z.Close(), os.WriteFile(archive, out.Bytes(), 0o644)); err != nil { //nolint:gosec // it is committed
		t.Fatal(err)
	}
	t.Logf("%s has %d bytes", archive, out.Len())
}

// unpack reads the archive into a folder.
func unpack(t *testing.T, folder string) {
	t.Helper()
	in, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name)) //nolint:gosec // the archive is ours
		content, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
