package files_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/files"
	"belfry/pkg/apimodel"
	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

const maxFile = 1 << 20

// library is a front with a binary service over a folder, at /files. Clients may
// read and write Books, only read Guarded, and neither with Locked. Hidden is not
// exposed and has no policy; Concealed hides what clients may not read; Edited is
// changed by editors.
type library struct {
	*apitest.Front
	set      *store.Set
	contents *store.Store
	folder   string
	storage  driver.Storage
	service  *binary.Service
}

// startLibrary starts a library. change may set the options of its service, and
// what apitest.Start takes; with options of auth, there are logins.
func startLibrary(t *testing.T, change ...any) *library {
	t.Helper()
	l := &library{folder: t.TempDir()}
	start := apitest.Start
	for _, c := range change {
		if _, ok := c.(func(*account.Options)); ok {
			start = func(t *testing.T, change ...any) *apitest.Front { return apitest.StartLogin(t, 1, change...)[0] }
		}
	}
	l.Front = start(t, append(change, func(o *api.Options) {
		l.open(t)
		service := binary.Options{Name: "files", Set: l.set, Contents: l.contents, Storage: l.storage, MaxSize: maxFile}
		b, f, books := files.Options{}, apimodel.Files{URL: "/files"}, config.Expose{URL: "/books"}
		for _, c := range change {
			switch c := c.(type) {
			case func(*binary.Options, *files.Options):
				c(&service, &b)
			case func(*apimodel.Files):
				c(&f)
			case func(*config.Expose):
				c(&books)
			}
		}
		l.service = binary.New(service)
		b.Service = l.service
		apitest.ExposeOnly(o, l.set.Store("Books"), books)
		apitest.Expose(o, l.set.Store("Guarded"), config.Expose{URL: "/guarded"})
		apitest.ServeFiles(o, b, f)
	})...)
	l.Books = l.set.Store("Books")
	for _, name := range []string{"Books", "Guarded", "Locked", "Hidden", "Concealed", "Edited"} {
		_, err := l.set.Store(name).Save(t.Context(), nil, "emma")
		l.Must(err)
	}
	return l
}

func (l *library) open(t *testing.T) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	check(err)
	t.Cleanup(func() { check(backend.Close()) })
	var stores []*store.Store
	for _, o := range []store.Options{
		{Name: "Books", Private: []string{"secret"}, Arrays: []string{"copies"}, IndexBinaries: true},
		{Name: "Guarded", Policy: rules(t, policy.Rules{Update: "false"}), IndexBinaries: true},
		{Name: "Locked", Policy: rules(t, policy.Rules{Get: "false", Update: "false"}), IndexBinaries: true},
		{Name: "Hidden", IndexBinaries: true},
		{Name: "Concealed", HideForbidden: true, Policy: rules(t, policy.Rules{Get: "false"}), IndexBinaries: true},
		{Name: "Edited", Policy: rules(t, policy.Rules{Update: "has(user.editor) && !has(object.closed)"}),
			IndexBinaries: true},
		binary.ContentsOptions("Contents"),
	} {
		s, err := store.Open(t.Context(), backend, o)
		check(err)
		stores = append(stores, s)
	}
	l.set, l.contents = store.NewSet(stores, nil), stores[len(stores)-1]
	l.storage, err = filestorage.Open(l.folder)
	check(err)
	t.Cleanup(func() { check(l.storage.Close()) })
}

func rules(t *testing.T, r policy.Rules) *policy.Policy {
	t.Helper()
	p, problems := policy.Compile(r)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p
}

type record struct {
	Hash, Name, Mimetype, Created string
	Size                          int64
	Metadata                      map[string]any
}

// put uploads bytes as they are. path is what follows /upload/.
func (l *library) put(path, body string, headers ...string) apitest.Reply {
	l.Helper()
	return l.Do("PUT", "/files/upload/"+path, body, append([]string{"Content-Type", ""}, headers...)...)
}

// add uploads bytes, which must succeed, and returns their path and hash.
func (l *library) add(property, body string, headers ...string) (path, hash string) {
	l.Helper()
	r := l.put("Books/emma/"+property+"/add", body, headers...).Want(201)
	return r.Header.Get("Location"), recordOf(r).Hash
}

// recordOf returns the record in a reply.
func recordOf(r apitest.Reply) (rec record) {
	r.JSON(&rec)
	return rec
}

// records returns the records of the object's property.
func (l *library) records(property string) (all []record) {
	l.Helper()
	var object map[string]json.RawMessage
	l.Do("GET", "/books/emma", "").Want(200).JSON(&object)
	if value := object[property]; value != nil {
		l.Must(json.Unmarshal(value, &all))
	}
	return all
}

// empty waits until the storage holds nothing, stages included.
func (l *library) empty() {
	l.Helper()
	kit.WaitFor(l, "nothing is left in the storage", func() bool {
		contents, _, err := l.storage.List(context.Background(), "", 10)
		l.Must(err)
		return len(contents) == 0 && l.stages() == 0
	})
}

func (l *library) stages() int {
	l.Helper()
	entries, err := os.ReadDir(filepath.Join(l.folder, "tmp"))
	l.Must(err)
	return len(entries)
}

func hashOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return hex.EncodeToString(sum[:])
}

func digestOf(body string) string {
	sum := sha256.Sum256([]byte(body))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}
