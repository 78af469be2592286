package binary_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"belfry/internal/mediatype"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/schema"
)

func TestUploadsAppendAndReplace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{"title":"x"}`)
	for i, step := range []struct {
		index    int
		text     string
		at       int
		replaced bool
		then     []string
	}{
		{binary.Append, "a", 0, false, []string{"a"}},
		{binary.Append, "b", 1, false, []string{"a", "b"}},
		{2, "c", 2, false, []string{"a", "b", "c"}},
		{1, "d", 1, true, []string{"a", "d", "c"}},
		{0, "c", 0, true, []string{"c", "d", "c"}},
		{0, "c", 0, true, []string{"c", "d", "c"}},
		{binary.Append, "", 3, false, []string{"c", "d", "c", ""}},
	} {
		got, err := f.Put(t.Context(), upload(photo(book, step.index), step.text))
		f.must(err)
		if got.Index != step.at || got.Replaced != step.replaced ||
			got.Object.Revision != f.object("Books", book).Revision {
			t.Errorf("step %d: %+v", i, got)
		}
		if hashes := f.photos(book); !slices.Equal(hashes, hashesOf(step.then)) {
			t.Errorf("step %d: the book has %v, want %v", i, hashes, step.then)
		}
		for index, text := range step.then {
			r, err := f.Get(t.Context(), photo(book, index))
			f.must(err)
			f.reads(r, text)
		}
	}
}

func hashesOf(texts []string) (hashes []string) {
	for _, text := range texts {
		hashes = append(hashes, hashOf(text))
	}
	return hashes
}

func TestRecordDescribesTheUpload(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	up := upload(photo(book, binary.Append), "hello")
	up.Name, up.Mimetype, up.Metadata = `C:\photos\Żółw <1>.png`, "image/PNG", object.Object{"width": []byte("7")}
	sum := sha256.Sum256([]byte("hello"))
	up.Digest, up.Size = sum[:], -1
	got, err := f.Put(t.Context(), up)
	f.must(err)
	want := `{"hash":"` + hashOf("hello") + `","name":"Żółw <1>.png","size":5,"mimetype":"image/png","created":"` +
		got.Created + `","metadata":{"width":7}}`
	body := f.object("Books", book).Body
	if field := string(object.Field(body, "photos")); field != "["+want+"]" {
		t.Errorf("the object holds %s, want %s", field, want)
	}
	if field := string(object.Field(body, store.BinariesField)); field != `{"photos":"files"}` {
		t.Errorf("%s is %s", store.BinariesField, field)
	}
	found, err := f.Get(t.Context(), photo(book, 0))
	f.must(err)
	if a, b := text(t, found), text(t, got.Record); a != b {
		t.Errorf("found %s, want %s", a, b)
	}
}

func TestUploadsAndDeletionsPublishEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	f.outbox.take()
	first := f.add(book, "a")
	f.add(book, "b")
	second, err := f.Put(t.Context(), upload(photo(book, 0), "c"))
	f.must(err)
	_, err = f.Delete(t.Context(), photo(book, 1), hashOf("b"))
	f.must(err)

	events := f.outbox.take()
	var got []string
	for i := 0; i < len(events); i += 2 {
		write, of := events[i], events[i+1]
		if write.Event != event.StoreUpdated ||
			of.Revision != write.Revision+1 && of.Revision+1 != write.Revision && of.Revision != write.Revision {
			t.Errorf("%+v is published with %+v", of, write)
		}
		if of.Object != nil || string(of.Binaries) != `{"photos":"files"}` || of.UUID != book || of.Store != "Books" ||
			of.Property != "photos" {
			t.Errorf("the event is %+v", of)
		}
		hash, _ := object.Text(object.Field(of.Record, "hash"))
		got = append(got, fmt.Sprint(of.Event, " ", *of.Index, " ", hash[:4]))
		if i == 4 && string(of.Previous["record"]) != text(t, first.Record) {
			t.Errorf("the replaced record in the event is %s", of.Previous.Encode())
		}
		if i != 4 && of.Previous != nil {
			t.Errorf("the event has the previous record %s, but nothing was replaced", of.Previous.Encode())
		}
	}
	want := []string{
		"Binary.Uploaded 0 " + hashOf("a")[:4], "Binary.Uploaded 1 " + hashOf("b")[:4],
		"Binary.Uploaded 0 " + second.Hash[:4], "Binary.Deleted 1 " + hashOf("b")[:4],
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	f.must(f.set.Store("Books").Delete(t.Context(), book, 0))
	if e := f.outbox.take()[0]; string(e.Binaries) != `{"photos":"files"}` {
		t.Errorf("a deletion says that the object held binaries in %s", e.Binaries)
	}
}

// refused uploads; the upload must be refused and change nothing.
func (f *fixture) refused(ctx context.Context, up binary.Upload, want errs.Kind) {
	f.Helper()
	_, err := f.Put(ctx, up)
	f.kind(err, want)
	if left, err := os.ReadDir(filepath.Join(f.folder, "tmp")); len(left) > 0 || err != nil {
		f.Errorf("%d stages are left, error %v", len(left), err)
	}
}

func TestUploadsToInvalidPlacesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{"title":"x","empty":[],"none":null,"other":[1]}`)
	f.must(f.MarkCandidate(t.Context(), hashOf("a")))
	long := strings.Repeat("x", 5000)
	for _, test := range []struct {
		place binary.Place
		want  errs.Kind
	}{
		{binary.Place{Store: "Nowhere", UUID: book, Property: "photos"}, errs.NotFound},
		{binary.Place{Store: "Contents", UUID: "files." + hashOf("a"), Property: "photos"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: "nobody", Property: "photos"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: "../x", Property: "photos"}, errs.Invalid},
		{binary.Place{Store: "Books", UUID: "a\x00b", Property: "photos"}, errs.Invalid},
		{binary.Place{Store: "Books", UUID: book, Property: "uuid"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "created"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "updated"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "reviews"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "secret"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "_binaries"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: ""}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "a.b"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "a/../b"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "a\x00"}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: long}, errs.NotFound},
		{binary.Place{Store: "Books", UUID: book, Property: "title"}, errs.Conflict},
		{binary.Place{Store: "Books", UUID: book, Property: "other", Index: binary.Append}, errs.Conflict},
		{binary.Place{Store: "Books", UUID: book, Property: "photos", Index: 1}, errs.Conflict},
		{binary.Place{Store: "Books", UUID: book, Property: "photos", Index: -2}, errs.Conflict},
	} {
		f.refused(t.Context(), binary.Upload{Place: test.place, Body: unreadBody{t}, Size: -1}, test.want)
	}
	for _, property := range []string{"empty", "none", "photos"} {
		_, err := f.Put(t.Context(), upload(binary.Place{Store: "Books", UUID: book, Property: property}, "a"))
		f.must(err)
	}
}

func TestPlacesCanBeRestricted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{service: func(o *binary.Options) {
		o.Properties = map[string][]string{"Books": {"photos"}}
	}})
	book, diary := f.save("Books", `{}`), f.save("Diaries", `{}`)
	f.add(book, "a")
	f.refused(t.Context(),
		binary.Upload{Place: binary.Place{Store: "Books", UUID: book, Property: "scans"}, Body: unreadBody{t}},
		errs.NotFound)
	f.refused(t.Context(),
		binary.Upload{Place: binary.Place{Store: "Diaries", UUID: diary, Property: "photos"}, Body: unreadBody{t}},
		errs.NotFound)
}

func TestServicesDoNotShareProperties(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	other := binary.New(binary.Options{Name: "other", Set: f.set, Contents: f.entries, Storage: f.storage})
	book := f.save("Books", `{}`)
	f.add(book, "a")
	_, err := other.Put(t.Context(), binary.Upload{Place: photo(book, 0), Body: unreadBody{t}})
	f.kind(err, errs.Conflict)
	_, err = other.Get(t.Context(), photo(book, 0))
	f.kind(err, errs.NotFound)
	_, err = other.Delete(t.Context(), photo(book, 0), hashOf("a"))
	f.kind(err, errs.NotFound)
	p := binary.Place{Store: "Books", UUID: book, Property: "scans"}
	_, err = other.Put(t.Context(), upload(p, "b"))
	f.must(err)
	_, err = f.Get(t.Context(), p)
	f.kind(err, errs.NotFound)
	if field := string(object.Field(f.object("Books", book).Body,
		store.BinariesField)); field != `{"photos":"files","scans":"other"}` {
		t.Errorf("%s is %s", store.BinariesField, field)
	}
}

// An upload that contradicts its headers is refused.
func TestUploadMustMatchItsHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{service: func(o *binary.Options) { o.MaxSize = 10 }})
	book := f.save("Books", `{}`)
	wrong := sha256.Sum256([]byte("other"))
	notAForm := errs.New(errs.Unsupported, "the body is not a form")
	for name, test := range map[string]struct {
		change func(*binary.Upload)
		want   errs.Kind
	}{
		"wrong digest":   {func(u *binary.Upload) { u.Digest = wrong[:] }, errs.Mismatch},
		"short digest":   {func(u *binary.Upload) { u.Digest = wrong[:5] }, errs.Mismatch},
		"wrong revision": {func(u *binary.Upload) { u.IfRevision, u.Body = 7, unreadBody{t} }, errs.Mismatch},
		"too few bytes":  {func(u *binary.Upload) { u.Size = 6 }, errs.Invalid},
		"too many bytes": {func(u *binary.Upload) { u.Size, u.Body = 4, io.MultiReader(u.Body, unreadBody{t}) },
			errs.Invalid},
		"announced large": {func(u *binary.Upload) { u.Size, u.Body = 11, unreadBody{t} }, errs.TooLarge},
		"large": {func(u *binary.Upload) { u.Size, u.Body = -1, strings.NewReader("0123456789x") },
			errs.TooLarge},
		"interrupted": {func(u *binary.Upload) { u.Body = io.MultiReader(u.Body, broken{io.ErrUnexpectedEOF}) },
			errs.Canceled},
		"has an error": {func(u *binary.Upload) { u.Body = io.MultiReader(u.Body, broken{notAForm}) },
			errs.Unsupported},
		"much metadata": {func(u *binary.Upload) {
			u.Metadata, u.Body = object.Object{"a": object.AppendString(nil, strings.Repeat("x", 9000))}, unreadBody{t}
		}, errs.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			up := upload(photo(book, binary.Append), "hello")
			test.change(&up)
			f.refused(t.Context(), up, test.want)
			if len(f.photos(book)) > 0 || len(f.stored()) > 0 || len(f.states()) > 0 {
				t.Errorf("the book has %v, kept are %v, noted %v", f.photos(book), f.stored(), f.states())
			}
		})
	}
	up := upload(photo(book, binary.Append), "0123456789")
	up.IfRevision = f.object("Books", book).Revision
	_, err := f.Put(t.Context(), up)
	f.must(err)
}

// A service with types takes a file by its content, as soon as enough of it has come, whatever the client says.
func TestTypesAreJudgedByTheContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{service: func(o *binary.Options) { o.Types = []string{"image/*", "text/markdown"} }})
	book := f.save("Books", `{}`)
	const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
	page := "<!DOCTYPE html>" + strings.Repeat(" ", mediatype.Start)
	for name, x := range map[string]struct {
		body     io.Reader
		declared string
		want     string // "" if it is refused
	}{
		"a picture":               {strings.NewReader(picture), "image/png", "image/png"},
		"as bytes":                {strings.NewReader(picture), "application/octet-stream", "image/png"},
		"byte by byte":            {iotest.OneByteReader(strings.NewReader(picture)), "image/gif", "image/png"},
		"Markdown":                {strings.NewReader("# Soup"), "text/markdown; charset=utf-8", "text/markdown; charset=utf-8"},
		"a page":                  {io.MultiReader(strings.NewReader(page), unreadBody{t}), "image/png", ""},
		"a page byte by byte":     {io.MultiReader(iotest.OneByteReader(strings.NewReader(page[:mediatype.Start])), unreadBody{t}), "image/png", ""},
		"a short page":            {strings.NewReader(page[:20]), "text/markdown", ""},
		"a picture after a page":  {strings.NewReader(page + picture), "image/png", ""},
		"a document":              {strings.NewReader("%PDF-1.7"), "image/png", ""},
		"nothing":                 {strings.NewReader(""), "image/png", ""},
		"a text that says a type": {strings.NewReader("hello"), "image/png", ""},
	} {
		t.Run(name, func(t *testing.T) {
			up := upload(photo(book, binary.Append), "")
			up.Body, up.Size, up.Mimetype = x.body, -1, x.declared
			if x.want == "" {
				before := len(f.photos(book))
				f.refused(t.Context(), up, errs.Unsupported)
				if got := len(f.photos(book)); got != before {
					t.Errorf("%d files, %d before", got, before)
				}
				return
			}
			if got, err := f.Put(t.Context(), up); err != nil || got.Mimetype != x.want {
				t.Errorf("%q, %v", got.Mimetype, err)
			}
		})
	}
}

// The limits of a property narrow those of its service, before the body is read and while it comes.
func TestPropertiesHaveLimitsOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{service: func(o *binary.Options) {
		o.MaxSize, o.Types = 20, []string{"image/*", "text/plain"}
		o.Limits = map[string]map[string]binary.Limits{"Books": {
			"photos": {MaxSize: 10, Types: []string{"text/*"}}, "covers": {},
		}}
	}})
	book := f.save("Books", `{}`)
	const picture = "\x89PNG\r\n\x1a\n"
	for name, x := range map[string]struct {
		property, body string
		want           errs.Kind // 0 if it is taken
	}{
		"as much as the property has": {"photos", "0123456789", 0},
		"more":                        {"photos", "01234567890", errs.TooLarge},
		"more than the service has":   {"photos", strings.Repeat("0", 21), errs.TooLarge},
		"another property":            {"covers", strings.Repeat("0", 20), 0},
		"more of another property":    {"covers", strings.Repeat("0", 21), errs.TooLarge},
		"a type of the service":       {"photos", picture, errs.Unsupported},
		"that another property takes": {"covers", picture, 0},
		"a type of the property only": {"photos", "<p>", errs.Unsupported},
	} {
		for _, announced := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, announced %t", name, announced), func(t *testing.T) {
				place := photo(book, binary.Append)
				place.Property = x.property
				up := upload(place, x.body)
				if up.Mimetype = "text/plain"; !announced {
					up.Size = -1
				}
				if x.want != 0 {
					f.refused(t.Context(), up, x.want)
				} else if _, err := f.Put(t.Context(), up); err != nil {
					t.Error(err)
				}
			})
		}
	}
	up := upload(photo(book, binary.Append), "")
	up.Body, up.Size = unreadBody{t}, 11
	f.refused(t.Context(), up, errs.TooLarge)
	if got := f.Limits("Books", "photos"); got.MaxSize != 10 || !slices.Equal(got.Types, []string{"text/*"}) {
		t.Errorf("photos have the limits %v", got)
	}
	if got := f.Limits("Books", "covers"); got.MaxSize != 20 || len(got.Types) != 2 {
		t.Errorf("covers have the limits %v", got)
	}
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

// disconnecting is a body whose sender disconnects while it is read.
type disconnecting struct{ cancel context.CancelFunc }

func (l disconnecting) Read(data []byte) (int, error) {
	l.cancel()
	return copy(data, "some"), nil
}

func TestUploadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	f.refused(ctx, binary.Upload{Place: photo(book, 0), Body: disconnecting{cancel}, Size: -1}, errs.Canceled)
	if len(f.photos(book)) > 0 || len(f.stored()) > 0 {
		t.Errorf("the book has %v, kept are %v", f.photos(book), f.stored())
	}
}

func TestFailedStorageLeavesTheRecordsUnchanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	f.add(book, "old")
	unavailable := errs.New(errs.Unavailable, "unavailable")
	for name, fault := range map[string]*error{"stage": &f.storage.stage, "write": &f.storage.write,
		"commit": &f.storage.commit} {
		*fault = unavailable
		f.refused(t.Context(), upload(photo(book, 0), "new "+name), errs.Unavailable)
		f.refused(t.Context(), upload(photo(book, 1), "new "+name), errs.Unavailable)
		*fault = nil
		r, err := f.Get(t.Context(), photo(book, 0))
		f.must(err)
		f.reads(r, "old")
		if len(f.photos(book)) != 1 {
			t.Errorf("%s: the book has %v", name, f.photos(book))
		}
	}
}

func TestSchemaCanRefuseTheRecord(t *testing.T) {
	t.Parallel()
	rules, err := schema.Compile("photos",
		[]byte(`{"properties":{"photos":{"items":{"properties":{"mimetype":{"enum":["image/png"]}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, options{stores: func(o *store.Options) {
		if o.Name == "Books" {
			o.Schema = rules
		}
	}})
	book := f.save("Books", `{}`)
	f.refused(t.Context(), upload(photo(book, 0), "a"), errs.Invalid)
	if state := f.states()[hashOf("a")]; state != "candidate" || len(f.photos(book)) > 0 {
		t.Errorf("the content is noted as %q, the book has %v", state, f.photos(book))
	}
	png := upload(photo(book, 0), "a")
	png.Mimetype = "image/png"
	_, err = f.Put(t.Context(), png)
	f.must(err)
}

func TestConcurrentUploadsAllSucceed(t *testing.T) {
	t.Parallel()
	const n = 24
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	var group sync.WaitGroup
	results := make([]binary.Result, n)
	failures := make([]error, n)
	for i := range n {
		group.Go(func() {
			results[i], failures[i] = f.Put(t.Context(), upload(photo(book, binary.Append), fmt.Sprint("photo ", i)))
		})
	}
	group.Wait()
	f.must(errors.Join(failures...))
	hashes := f.photos(book)
	used := map[int]bool{}
	for i, r := range results {
		if used[r.Index] || len(hashes) != n || hashes[r.Index] != hashOf(fmt.Sprint("photo ", i)) {
			t.Errorf("upload %d got index %d of %d", i, r.Index, len(hashes))
		}
		used[r.Index] = true
	}
}
