package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/operations/importer"
)

const importConfig = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {}}
  Books:
    expose: {url: /library/books}
    schema: book.json
    map: {Authors: {key: author, target: books, fields: title}}
  Hidden: {}
  Fixed: {expose: {restrict: {create: true}}}
`

// library is a belfry that serves, and the folder that its files are in.
type library struct {
	*testing.T
	folder string
	url    string
}

func newLibrary(t *testing.T) *library {
	t.Helper()
	l := &library{T: t, folder: t.TempDir()}
	l.write("book.json",
		`{"$schema": "https://json-schema.org/draft/2019-09/schema", "properties": {"title": {"type": "string"}}}`)
	c, err := config.Load(l.write("belfry.yaml", importConfig), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	l.url = "http://" + a.HTTPAddress()
	return l
}

func (l *library) write(name, content string) (path string) {
	l.Helper()
	path = filepath.Join(l.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		l.Fatal(err)
	}
	return path
}

// belfry runs a command line on the library.
func (l *library) belfry(ctx context.Context, in io.Reader, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	args = append(args, "--config", filepath.Join(l.folder, "belfry.yaml"))
	code = run(ctx, args, streams{in, &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// want runs an import and checks how it ends and what it says.
func (l *library) want(code int, says string, in string, args ...string) {
	l.Helper()
	got, out, errOut := l.belfry(l.Context(), strings.NewReader(in),
		append([]string{"import", "--url", l.url}, args...)...)
	if got != code || !strings.Contains(out+errOut, says) {
		l.Errorf("belfry import %s: exit %d instead of %d, or it does not say %q:\n%s%s", strings.Join(args, " "), got,
			code, says, out, errOut)
	}
}

func TestImportCommand(t *testing.T) {
	l := newLibrary(t)
	books := l.write("books.json", `[{"uuid":"a","title":"A"},{"uuid":"b","title":"B"}]`)
	l.want(0, "2 objects read, 2 created, in ", "", "Books", books)
	l.want(0, "2 objects read, 2 existed already, in ", "", "Books", books)
	l.want(0, "2 objects read, 2 updated, in ", "", "Books", books, "--update")
	l.want(0, "1 skipped, 1 existed already", "", "Books", books, "--skip", "1")
	l.want(0, "3 objects read, 3 created", "{}\n{}\n{\"title\":\"C\"}\n", "Books", "-")
	l.want(0, "2 objects read, 2 valid (nothing was sent)", "", "Books", books, "--dry-run")
}

func TestImportCommandReportsErrors(t *testing.T) {
	l := newLibrary(t)
	bad := l.write("bad.jsonl", "{\"uuid\":\"a\",\"title\":1}\n{\"title\": x}\n{\"title\":\"good\"}\n")
	l.want(1, bad+":1:1: a: ", "", "Books", bad)
	l.want(1, bad+":2:11: malformed JSON", "", "Books", bad)
	l.want(1, "3 objects read, 1 existed already, 2 rejected", "", "Books", bad)
	l.want(1, "1 object read, 1 rejected", "", "Books", bad, "--stop", "--concurrency", "1")
	l.want(1, "/title", "", "Books", bad, "--dry-run")
	cut := l.write("cut.json", "[{},\n{")
	l.want(1, cut+":2:2: the input ends within the array", "", "Books", cut)
	l.want(1, "run the same command again", "", "Books", cut)

	l.want(2, "no store \"Nooks\" is configured; there are Authors, Books, ", "", "Nooks", bad)
	l.want(2, "stores.Hidden.expose", "", "Hidden", bad)
	l.want(2, "restrict.create", "", "Fixed", bad)
	l.want(2, "--url: expected a URL such as", "", "Books", bad, "--url", "ftp://x")
	l.want(2, "--url: expected a URL such as", "", "Books", bad, "--url", "localhost:8080")
	l.want(2, "can't read the file", "", "Books", bad+".not")
	l.want(2, "is a folder", "", "Books", l.folder)
	l.want(2, "--concurrency", "", "Books", bad, "--concurrency", "0")
	l.url = "http://127.0.0.1:1"
	l.want(1, "no server responds at http://127.0.0.1:1/library/books", "", "Books", bad)
}

// What is exported can be imported, though it holds what the server owns.
func TestExportedIsImported(t *testing.T) {
	l := newLibrary(t)
	l.want(0, "1 created", `{"uuid":"lem","name":"Stanisław Lem"}`, "Authors", "-")
	l.want(0, "1 created", `{"title":"Solaris","author":"lem"}`, "Books", "-")
	file := filepath.Join(l.folder, "authors.jsonl")
	if code, _, errOut := l.belfry(t.Context(), nil, "export", "Authors", "-o", file); code != 0 {
		t.Fatal(errOut)
	}
	l.want(0, "1 object read, 1 updated", "", "Authors", file, "--update")
}

// idle is a terminal or a pipe without input.
type idle struct {
	asked chan struct{}
	never chan struct{}
}

func (i idle) Read([]byte) (int, error) {
	close(i.asked)
	<-i.never
	return 0, io.EOF
}

func TestInterruptEndsWaitingForInput(t *testing.T) {
	l := newLibrary(t)
	in := idle{make(chan struct{}), make(chan struct{})}
	t.Cleanup(func() { close(in.never) })
	ctx, interrupt := context.WithCancel(t.Context())
	go func() {
		<-in.asked
		interrupt()
	}()
	code, out, errOut := l.belfry(ctx, in, "import", "Books", "-", "--url", l.url)
	if code != 130 || !strings.Contains(out, "0 objects read") ||
		!strings.Contains(errOut, "run the same command again") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

func TestProgressWithoutTerminal(t *testing.T) {
	var w bytes.Buffer
	d := newDisplay(&w, "books.json", 1000)
	d.began = time.Now().Add(-time.Hour)
	d.show(importer.Progress{Read: 20, Bytes: 250, Failed: 3})
	d.failure(importer.Failure{Position: importer.Position{Line: 4, Column: 2}, UUID: "a", Status: 403,
		Message: "denied"})
	d.end(importer.Progress{Read: 21})
	want := "books.json: 20 objects read (25 %), 3 rejected, 0 a second\nbooks.json:4:2: a: denied (403)\n"
	if w.String() != want {
		t.Errorf("got  %q\nwant %q", w.String(), want)
	}
}
