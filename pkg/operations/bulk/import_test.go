package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/operations/table"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
)

// importing is a store with files that are imported into it.
type importing struct {
	*testing.T
	st      *store.Store
	uploads *bulk.Uploads
	folder  string
}

func startImporting(t *testing.T, st *store.Store) *importing {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "imports")
	i := &importing{t, st, bulk.NewUploads(folder), folder}
	t.Cleanup(i.uploads.Close)
	return i
}

// add keeps a file, with all its columns mapped to fields of their names.
func (i *importing) add(name, text string) *bulk.Upload {
	i.Helper()
	up, err := i.uploads.Add("ada", "Items", name, 0, strings.NewReader(text))
	if err != nil {
		i.Fatal(err)
	}
	var m table.Mapping
	for n, column := range up.Columns {
		m = append(m, table.Column{Index: n, Name: column, To: column, Kind: table.Seen})
	}
	i.uploads.Map(up, m)
	return up
}

// run imports a file.
func (i *importing) run(up *bulk.Upload, existing string, dry bool) string {
	i.Helper()
	r, err := bulk.Import(admin(i.T), i.st, i.uploads,
		bulk.ImportRequest{Store: "Items", File: up.ID, Existing: existing, Dry: dry, Actor: "ada"}, host())
	if err != nil {
		i.Fatal(err)
	}
	text := fmt.Sprintf("created %d, changed %d, same %d, skipped %d, refused %d of %d",
		r.Created, r.Changed, r.Same, r.Skipped, r.Refused, r.Total)
	for _, f := range r.Refusals {
		text += fmt.Sprintf("; %d %s %s: %s", f.Line, f.Column, f.UUID, f.Reason)
	}
	return text
}

func (i *importing) body(uuid string) string {
	i.Helper()
	o, err := i.st.Get(i.Context(), uuid)
	if err != nil {
		return err.Error()
	}
	return string(object.Without(o.Body, func(name string) bool { return name == "created" || name == "updated" }))
}

const items = "uuid,state,n,keep\n" +
	"a,old,1,\n" + // exists, and has another n and a field more
	"b,old,2,\n" +
	"c,new,3,1\n" + // the schema refuses it
	"d,\"old,4\n\",,\n" +
	"e/f,old,,\n" +
	"a,older,5,\n" // later than the first

func TestAFileIsCheckedAndThenImported(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	save(t, i.st, "a", `{"state":"old","n":9,"keep":true,"more":1}`)
	before := i.body("a")
	up := i.add("items.csv", items)
	const refused = "; 4 state c: the object does not fit the schema; /state: must stay" // in any order
	for range 2 {
		got := i.run(up, bulk.Replace, true)
		if !strings.HasPrefix(got, "created 2, changed 2, same 0, skipped 0, refused 2 of 6") ||
			!strings.Contains(got, refused) || !strings.Contains(got, "; 7 uuid : not a uuid") {
			t.Errorf("the check says %s", got)
		}
		if there, err := i.st.Exists(t.Context(), "b"); i.body("a") != before || there || err != nil {
			t.Fatalf("the check has written: %s, %t %v", i.body("a"), there, err)
		}
	}
	if got := i.run(up, bulk.Replace, false); !strings.HasPrefix(got,
		"created 2, changed 2, same 0, skipped 0, refused 2 of 6") || !strings.Contains(got, refused) {
		t.Errorf("the import says %s", got)
	}
	// The last row of an object counts. A field without a column stays, and one with an empty cell goes.
	if got := i.body("a"); got != `{"uuid":"a","more":1,"n":5,"state":"older"}` {
		t.Error(got)
	}
	if got := i.body("d"); got != `{"uuid":"d","state":"old,4\n"}` {
		t.Error(got)
	}
	var list bytes.Buffer
	if found, err := i.uploads.Refused(up.ID, &list); !found || err != nil || !strings.HasPrefix(list.String(),
		"line,column,uuid,reason\n") || !strings.Contains(list.String(), "4,state,c,") {
		t.Errorf("%t %v %s", found, err, &list)
	}
	// The file is gone, and so is its import.
	if again, _ := i.uploads.Of("ada", "Items"); again != nil {
		t.Error("the file is still there")
	}
	_, err := bulk.Import(admin(t), i.st, i.uploads,
		bulk.ImportRequest{Store: "Items", File: up.ID, Existing: bulk.Skip, Actor: "ada"}, host())
	if errs.KindOf(err) != errs.Invalid || err == nil {
		t.Error(err)
	}
	if got := i.run(i.add("items.csv", items), bulk.Skip, false); !strings.HasPrefix(got,
		"created 0, changed 0, same 0, skipped 4, refused 2 of 6") {
		t.Error(got)
	}
	if got := i.run(i.add("items.csv", "uuid,state,n\nb,old,2\n"), bulk.Replace, false); !strings.HasPrefix(got,
		"created 0, changed 0, same 1, skipped 0, refused 0 of 1") {
		t.Error(got)
	}
}

// A row without a uuid makes the same object each time.
func TestRowsWithoutUUIDsAreImportedOnce(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	for _, want := range []string{"created 2, changed 0, same 0, skipped 0",
		"created 0, changed 0, same 0, skipped 2"} {
		up := i.add("items.ndjson", "{\"n\":1}\n{\"n\":1}\n")
		if got := i.run(up, bulk.Skip, false); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A row that no store accepts is refused before it waits for a worker.
func TestARowThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	text := `[{"uuid":"a","n":"` + strings.Repeat("x", 5<<20) + `"},{"uuid":"b","n":1}]`
	if got := i.run(i.add("items.json", text), bulk.Skip, false); got !=
		"created 1, changed 0, same 0, skipped 0, refused 1 of 2; 1  a: the row has values of more than 4 MiB" {
		t.Error(got)
	}
}

// What belfry keeps itself stays, whatever a file has.
func TestAnImportSetsNoFieldThatBelfryKeeps(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	o, err := object.Parse([]byte(`{"secret":"s","covers":[{"hash":"h"}],"_binaries":{"covers":"Covers"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := i.st.Save(t.Context(), o, "a"); err != nil {
		t.Fatal(err)
	}
	const text = `[{"uuid":"a","secret":"x","_binaries":{},"covers":[],"created":"2000-01-01T00:00:00Z","n":1},
		{"uuid":"b","secret":"x","_binaries":{"n":"Covers"},"n":2}]`
	if got := i.run(i.add("items.json", text), bulk.Replace, false); !strings.HasPrefix(got,
		"created 1, changed 1, same 0, skipped 0, refused 0 of 2") {
		t.Error(got)
	}
	for uuid, want := range map[string]string{
		"a": `{"uuid":"a","_binaries":{"covers":"Covers"},"covers":[{"hash":"h"}],"n":1,"secret":"s"}`,
		"b": `{"uuid":"b","n":2}`,
	} {
		if got := i.body(uuid); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// A bulk change leaves the records of files, too.
	r, err := bulk.Run(admin(t), i.st, bulk.Request{Store: "Items", Action: bulk.Set, Field: "covers", Value: "1",
		Objects: "a"}, nil, host())
	if err != nil || r.Refused != 1 || !strings.Contains(r.Refusals[0].Reason, "has files") {
		t.Errorf("%+v %v", r, err)
	}
}

// An object may name one that comes later in the file.
func TestObjectsOfAFileNameEachOther(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	reopen := func(refs ...store.Reference) *store.Store {
		t.Helper()
		backend, err := filestore.Open(folder, filestore.Options{})
		if err != nil {
			t.Fatal(err)
		}
		st, err := store.Open(t.Context(), backend, store.Options{Name: "Items", References: refs})
		if err != nil {
			t.Fatal(err)
		}
		if len(refs) > 0 {
			t.Cleanup(func() { _ = backend.Close() })
			return st
		}
		save(t, st, "root", `{}`)
		if err := backend.Close(); err != nil {
			t.Fatal(err)
		}
		return nil
	}
	reopen()
	st := reopen(store.Reference{Field: "parent", Target: "Items", Required: true})
	store.NewSet([]*store.Store{st}, nil)
	i := startImporting(t, st)
	var text strings.Builder
	for n := range 9 {
		fmt.Fprintf(&text, "{\"uuid\":\"o%d\",\"parent\":\"o%d\"}\n", n, n+1)
	}
	text.WriteString("{\"uuid\":\"o9\",\"parent\":\"root\"}\n{\"uuid\":\"lost\",\"parent\":\"none\"}\n")
	if got := i.run(i.add("items.ndjson", text.String()), bulk.Skip, false); !strings.HasPrefix(got,
		"created 10, changed 0, same 0, skipped 0, refused 1 of 11; 11 parent lost: ") {
		t.Error(got)
	}
}

func TestARefusalInTheMiddleOfAFile(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	var text strings.Builder
	text.WriteString("uuid,state,keep\n")
	for n := range 500 {
		keep := ""
		if n == 250 {
			keep = "1"
		}
		fmt.Fprintf(&text, "o%03d,new,%s\n", n, keep)
	}
	if got := i.run(i.add("items.csv", text.String()), bulk.Skip, false); !strings.HasPrefix(got,
		"created 499, changed 0, same 0, skipped 0, refused 1 of 500; 252 state o250: ") {
		t.Error(got)
	}
}

// An import that ends early leaves whole objects, and its file is removed.
func TestAnImportIsStopped(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	var text strings.Builder
	text.WriteString("uuid,n\n")
	for n := range 3000 {
		fmt.Fprintf(&text, "o%04d,%d\n", n, n)
	}
	up := i.add("items.csv", text.String())
	ctx, cancel := context.WithCancel(admin(t))
	h := host()
	var began atomic.Bool
	h.Report = func(r bulk.Report) {
		if r.Created > 0 && began.CompareAndSwap(false, true) {
			cancel()
		}
	}
	r, err := bulk.Import(ctx, i.st, i.uploads,
		bulk.ImportRequest{Store: "Items", File: up.ID, Existing: bulk.Skip, Actor: "ada"}, h)
	if !errors.Is(err, context.Canceled) || r.Created == 0 || r.Handled() >= 3000 {
		t.Errorf("%+v %v", r, err)
	}
	n := int64(0)
	for o, err := range i.st.All(t.Context(), 500) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; object.Field(o.Body, "n") == nil {
			t.Errorf("%s is not whole", o.Body)
		}
	}
	if n < r.Created { // a write in progress at the stop may not be counted
		t.Errorf("%d objects, %+v", n, r)
	}
	if again, _ := i.uploads.Of("ada", "Items"); again != nil {
		t.Error("the file is still there")
	}
}

func TestFilesWaitWithoutNames(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	first := i.add("a.csv", "n\n1\n")
	i.run(first, bulk.Skip, true)
	if names, err := os.ReadDir(i.folder); err != nil || len(names) > 0 {
		t.Errorf("%v %v", names, err)
	}
	second := i.add("b.csv", "n\n2\n")
	if up, _ := i.uploads.Of("ada", "Items"); up != second {
		t.Error("the first file is still there")
	}
	if up, _ := i.uploads.Of("ada", "Others"); up != nil {
		t.Error("the file is another store's")
	}
	if up, _ := i.uploads.Of("bob", "Items"); up != nil {
		t.Error("the file is another admin's")
	}
	q := bulk.ImportRequest{Store: "Items", File: second.ID, Existing: bulk.Skip, Actor: "bob"}
	if _, err := bulk.Import(admin(t), i.st, i.uploads, q, host()); errs.KindOf(err) != errs.Invalid || err == nil {
		t.Errorf("another admin's file: %v", err)
	}
	broken := errors.New("the connection is gone")
	if _, err := i.uploads.Add("ada", "Items", "c.csv", 0, iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := i.uploads.Add("ada", "Items", "c.csv", 0, strings.NewReader("")); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
	if up, _ := i.uploads.Of("ada", "Items"); up != second {
		t.Error("a file that was refused has replaced the one before")
	}
	for n := range 7 {
		if _, err := i.uploads.Add(fmt.Sprint(n), "Items", "a.csv", 0, strings.NewReader("n\n1\n")); err != nil {
			t.Fatal(err)
		}
	}
	_, err := i.uploads.Add("one more", "Items", "a.csv", 0, strings.NewReader("n\n1\n"))
	if errs.KindOf(err) != errs.Conflict {
		t.Error(err)
	}
	i.add("c.csv", "n\n3\n") // one's own file is replaced
	i.uploads.Remove("ada", second.ID)
	if up, _ := i.uploads.Of("ada", "Items"); up == nil {
		t.Error("another file was removed")
	}
	i.uploads.Close()
	if up, _ := i.uploads.Of("ada", "Items"); up != nil {
		t.Error("a file is left")
	}
	_, err = i.uploads.Add("ada", "Items", "a.csv", 0, strings.NewReader("n\n1\n"))
	if errs.KindOf(err) != errs.Unavailable {
		t.Error(err)
	}
}

// The list of what was refused is opened in a spreadsheet: also a uuid that could be a formula is a text there.
func TestRefusedUUIDsAreNoFormulas(t *testing.T) {
	t.Parallel()
	i := startImporting(t, open(t))
	up := i.add("items.csv", "uuid,state,keep\n+A1,new,1\n")
	i.run(up, bulk.Skip, false)
	var list bytes.Buffer
	if _, err := i.uploads.Refused(up.ID, &list); err != nil || !strings.Contains(list.String(), "2,state,'+A1,") {
		t.Errorf("%v %s", err, &list)
	}
}
