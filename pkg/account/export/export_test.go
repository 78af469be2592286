package export_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/account/export"
	"belfry/pkg/binary"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// fixture has notes with owners, and their files.
type fixture struct {
	*testing.T
	notes   *store.Store
	files   *binary.Service
	storage *filestorage.Storage
	folder  string
	*export.Exporter
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureOn(t, filestore.Options{})
}

func newFixtureOn(t *testing.T, o filestore.Options) *fixture {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), o)
	f := &fixture{T: t, folder: t.TempDir()}
	f.must(err)
	t.Cleanup(func() { f.must(backend.Close()) })
	rules := policy.Rules{Owner: true, OwnerField: "user", Get: `isOwner && !("withheld" in object)`}
	compiled, problems := policy.Compile(rules)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	fields, wrong := policy.CompileFields(rules, map[string]policy.FieldRule{"grade": {Read: "false"},
		"secretFiles": {Read: `user.uuid == "carol"`, Write: "true"}})
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	open := func(o store.Options) *store.Store {
		s, err := store.Open(t.Context(), backend, o)
		f.must(err)
		return s
	}
	contents := open(binary.ContentsOptions("Contents"))
	f.notes = open(store.Options{
		Name: "Notes", Policy: compiled, Fields: fields, Private: []string{"internal"}, IndexBinaries: true,
		Indexes: []query.Index{{Name: "user", Fields: []string{"user"}}},
	})
	f.storage, err = filestorage.Open(f.folder)
	f.must(err)
	t.Cleanup(func() { f.must(f.storage.Close()) })
	f.files = binary.New(binary.Options{Name: "files", Set: store.NewSet([]*store.Store{f.notes, contents}, nil),
		Contents: contents, Storage: f.storage})
	f.Exporter = export.New(export.Options{Sources: []export.Source{{Store: f.notes, Owner: "user"}},
		Files: map[string]*binary.Service{"files": f.files}})
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// as is the context of a user.
func as(ctx context.Context, user string) context.Context {
	return store.WithCall(ctx,
		store.Call{Client: true, Origin: event.OriginHTTP, User: object.Object{"uuid": object.AppendString(nil, user)}})
}

func (f *fixture) note(uuid, text string) {
	f.Helper()
	o, err := object.Parse([]byte(text))
	f.must(err)
	_, err = f.notes.Save(f.Context(), o, uuid)
	f.must(err)
}

func (f *fixture) attach(uuid, property, name, content string) {
	f.Helper()
	_, err := f.files.Put(f.Context(), binary.Upload{
		Place: binary.Place{Store: "Notes", UUID: uuid, Property: property, Index: binary.Append}, Name: name,
		Size: int64(len(content)), Body: strings.NewReader(content),
	})
	f.must(err)
}

// archive is an archive that was read.
type archive struct {
	names    []string
	content  map[string]string
	manifest export.Manifest
}

// read reads an archive, and compares it with its manifest.
func (f *fixture) read(data []byte) archive {
	f.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	f.must(err)
	a := archive{content: map[string]string{}}
	for _, entry := range r.File {
		in, err := entry.Open()
		f.must(err)
		text, err := io.ReadAll(in)
		f.must(err)
		a.names = append(a.names, entry.Name)
		a.content[entry.Name] = string(text)
	}
	if len(a.names) == 0 || a.names[len(a.names)-1] != "manifest.json" {
		f.Fatalf("no manifest at the end of %s", a.names)
	}
	f.must(json.Unmarshal([]byte(a.content["manifest.json"]), &a.manifest))
	sum := func(text string) string { s := sha256.Sum256([]byte(text)); return hex.EncodeToString(s[:]) }
	lines, files := "", 0
	for _, name := range a.names {
		if strings.HasPrefix(name, "files/") {
			files++
			lines += sum(a.content[name]) + "  " + name + "\n"
		}
	}
	notes := a.content["Notes.jsonl"]
	m := a.manifest
	if m.Account.SHA256 != sum(a.content["account.json"]) || m.Files.SHA256 != sum(lines) || m.Files.Files != files ||
		m.Stores["Notes"].SHA256 != sum(notes) || m.Stores["Notes"].Objects != strings.Count(notes, "\n") ||
		m.Stores["Notes"].Bytes != int64(len(notes)) {
		f.Errorf("the manifest differs: %s", a.content["manifest.json"])
	}
	return a
}

func (f *fixture) export(user string) archive {
	f.Helper()
	var b bytes.Buffer
	f.must(f.Write(as(f.Context(), user), &b, user, map[string]string{"user": user}))
	return f.read(b.Bytes())
}

func TestAnExportHasWhatTheUserMaySee(t *testing.T) {
	f := newFixture(t)
	f.note("a1", `{"user":"ada","text":"mine","grade":"the-grade","internal":"the-internal","_hidden":"the-hidden"}`)
	f.note("a2", `{"user":"ada","withheld":true,"text":"the-withheld"}`)
	f.note("b1", `{"user":"bob","text":"the-text-of-bob"}`)
	f.note("n1", `{"text":"of-nobody"}`)
	f.attach("a1", "photos", "ada.txt", "the content")
	f.attach("a1", "secretFiles", "secret.txt", "the-secret-content")
	f.attach("a2", "photos", "withheld.txt", "the-withheld-content")
	f.attach("b1", "photos", "bob.txt", "the-content-of-bob")
	a := f.export("ada")
	if want := []string{"account.json", "Notes.jsonl", "files/Notes/a1/photos/0-ada.txt",
		"manifest.json"}; !slices.Equal(a.names, want) {
		t.Errorf("entries %s, want %s", a.names, want)
	}
	all := fmt.Sprint(a.names, a.content)
	for _, hidden := range []string{"the-grade", "the-internal", "the-hidden", "withheld", "bob", "of-nobody", "secret",
		"_binaries"} {
		if strings.Contains(all, hidden) {
			t.Errorf("the archive has %s: %s", hidden, all)
		}
	}
	if a.content["files/Notes/a1/photos/0-ada.txt"] != "the content" ||
		!strings.Contains(a.content["Notes.jsonl"], `"text":"mine"`) {
		t.Errorf("%s", all)
	}
	if a := f.export("eve"); a.manifest.Stores["Notes"].Objects != 0 {
		t.Error(a.content)
	}
}

// Clients name files as they like.
func TestNamesInAnArchiveLeadNowhereElse(t *testing.T) {
	f := newFixture(t)
	f.note("a1", `{"user":"ada"}`)
	names := []string{"", "../../etc/passwd", `..\..\boot.ini`, "..", "a:b|c", "tab\tline\nend", "\u202egpj.exe",
		"trailing. . ", "CON", strings.Repeat("é", 120) + ".jpeg"}
	for i, name := range names {
		f.attach("a1", fmt.Sprintf("files-%d", i), name, "content of "+name)
	}
	a := f.export("ada")
	seen := map[string]bool{}
	for _, name := range a.names[2 : len(a.names)-1] {
		clean := path.Clean(name)
		parts := strings.Split(name, "/")
		if clean != name || len(parts) != 5 || !strings.HasPrefix(name, "files/Notes/a1/") ||
			strings.ContainsAny(name, "\\:*?\"<>|\n\t") || seen[strings.ToLower(parts[3])] {
			t.Errorf("entry %q", name)
		}
		seen[strings.ToLower(parts[3])] = true
		for _, part := range parts {
			if len(part) > 255 || part == ".." || part == "." || strings.HasSuffix(part, ".") {
				t.Errorf("element %q of %q", part, name)
			}
		}
	}
	if len(seen) != len(names) {
		t.Errorf("%d of %d files: %q", len(seen), len(names), a.names)
	}
}

// A file that the storage has lost is named. It keeps nobody from the rest.
func TestALostFileIsInTheManifest(t *testing.T) {
	f := newFixture(t)
	f.note("a1", `{"user":"ada"}`)
	f.attach("a1", "photos", "lost.txt", "lost")
	f.attach("a1", "photos", "kept.txt", "kept")
	sum := sha256.Sum256([]byte("lost"))
	removed := 0
	f.must(filepath.WalkDir(f.folder, func(file string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(file, hex.EncodeToString(sum[:])) {
			removed++
			return os.Remove(file)
		}
		return err
	}))
	if removed == 0 {
		t.Fatal("nothing was removed")
	}
	a := f.export("ada")
	if m := a.manifest.Files; m.Missing != 1 || m.Files != 1 ||
		!slices.Equal(m.Lost, []string{"files/Notes/a1/photos/0-lost.txt"}) {
		t.Errorf("%+v", m)
	}
}

// failing is a client who disconnects after some bytes.
type failing struct{ left int }

var errGone = errors.New("gone")

func (w *failing) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errGone
	}
	return len(p), nil
}

func TestAnExportEndsWithItsClientAndItsSession(t *testing.T) {
	f := newFixture(t)
	for i := range 200 {
		f.note(fmt.Sprintf("a%03d", i), fmt.Sprintf(`{"user":"ada","text":"%x"}`, sha256.Sum256([]byte{byte(i)})))
	}
	if err := f.Write(as(t.Context(), "ada"), &failing{10}, "ada", nil); !errors.Is(err, errGone) {
		t.Error("a client who is gone:", err)
	}
	ended := errs.New(errs.Unauthenticated, "ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	var b bytes.Buffer
	if err := f.Write(as(ctx, "ada"), &b, "ada", nil); !errors.Is(err, ended) ||
		strings.Contains(b.String(), "manifest.json") {
		t.Error("a session that has ended:", err)
	}
}

func TestAnExportOfObjectsThatChange(t *testing.T) {
	f := newFixture(t)
	const notes = 300
	for i := range notes {
		f.note(fmt.Sprintf("a%03d", i), `{"user":"ada","n":0}`)
	}
	f.attach("a000", "photos", "p", "content")
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for n := 1; ctx.Err() == nil; n++ {
				uuid := fmt.Sprintf("a%03d", (n*7)%100+100*w)
				owner := []string{"ada", "bob"}[n%2]
				o, _ := object.Parse(fmt.Appendf(nil, `{"user":%q,"n":%d}`, owner, n))
				if _, err := f.notes.Update(t.Context(), o, store.UpdateOptions{UUID: uuid, Patch: true}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		a := f.export("ada")
		kept := 0
		for line := range strings.Lines(a.content["Notes.jsonl"]) {
			var n struct{ UUID, User string }
			f.must(json.Unmarshal([]byte(line), &n))
			if n.User != "ada" {
				t.Errorf("the archive has %s", line)
			}
			if n.UUID >= "a200" {
				kept++
			}
		}
		if kept != 100 {
			t.Errorf("%d of 100 objects that do not change", kept)
		}
	}
	cancel()
	writers.Wait()
}

// highest is a client who reads everything, and notes how much memory is in use.
type highest struct{ bytes, writes, heap uint64 }

func (w *highest) Write(p []byte) (int, error) {
	w.bytes += uint64(len(p))
	if w.writes++; w.writes%20 == 1 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.heap = max(w.heap, m.HeapAlloc)
	}
	return len(p), nil
}

// 10,000 objects of 4 KiB and a file of 16 MiB take no more than some MiB. The store's own memory, which reading fills,
// is small here.
func TestAnExportTakesLittleMemory(t *testing.T) {
	f := newFixtureOn(t, filestore.Options{CacheBytes: 1 << 20, MemTableBytes: 1 << 20})
	var work sync.WaitGroup
	for w := range 16 {
		work.Go(func() {
			random := rand.NewChaCha8([32]byte{byte(w)})
			for i := w; i < 10_000; i += 16 {
				text := make([]byte, 2<<10) // which does not get smaller when it is compressed
				_, _ = random.Read(text)
				o, _ := object.Parse(fmt.Appendf(nil, `{"user":"ada","text":"%x"}`, text))
				if _, err := f.notes.Save(t.Context(), o, fmt.Sprintf("a%05d", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	f.attach("a00000", "films", "film", strings.Repeat("0123456789abcdef", 1<<20))
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	var w highest
	f.must(f.Write(as(t.Context(), "ada"), &w, "ada", nil))
	if w.bytes < 10_000*1000 {
		t.Errorf("%d bytes were written", w.bytes)
	}
	const limit = 16 << 20
	if w.heap > before.HeapAlloc+limit {
		t.Errorf("the heap grew by %d MiB", (w.heap-before.HeapAlloc)>>20)
	}
	t.Logf("%d MiB written, the heap grew by %d KiB", w.bytes>>20, (int64(w.heap)-int64(before.HeapAlloc))>>10)
}
