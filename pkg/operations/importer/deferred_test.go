package importer

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Objects that name others of the file are imported in any order: the server refuses those whose objects do not exist
// yet, and they are sent again at the end.
func TestObjectsThatNameLaterOnesAreImported(t *testing.T) {
	s := serve(t)
	s.gate = func(_ int64, w http.ResponseWriter, r *http.Request, next http.Handler) {
		body := readBody(s, r)
		parent, named := object.Text(object.Field(body, "parent"))
		if named {
			if exists, err := s.store.Exists(r.Context(), parent); err != nil || !exists {
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"detail":"refused","errors":[{"pointer":"/parent","message":"names nothing"}]}`))
				return
			}
		}
		next.ServeHTTP(w, r)
	}
	const lines = `{"uuid":"c","parent":"b"}
{"uuid":"b","parent":"a"}
{"uuid":"lost","parent":"none"}
{"uuid":"a"}
`
	var failures []Failure
	i := New(Options{
		URL: s.url, Concurrency: 2, Refers: func(pointer string) bool { return pointer == "/parent" },
		OnFailure: func(f Failure) { failures = append(failures, f) },
	})
	s.must(i.Run(t.Context(), strings.NewReader(lines)))
	p := i.Progress()
	if p.Created != 3 || p.Failed != 1 || p.Complete != 4 || len(failures) != 1 || failures[0].UUID != "lost" {
		t.Errorf("%+v, failures %v", p, failures)
	}
}

func TestOtherRefusalsAreNotDeferred(t *testing.T) {
	i := New(Options{Refers: func(pointer string) bool { return pointer == "/parent" }})
	it := &item{n: 7}
	for text, r := range map[string]*reply{
		"another field": {status: 400, fields: fieldsAt("/parent", "/title")},
		"no field":      {status: 400},
		"a conflict":    {status: 409, fields: fieldsAt("/parent")},
	} {
		if i.deferItem(it, "x", []byte(`{}`), r) {
			t.Errorf("%s is deferred", text)
		}
	}
	if i.progress.Read = 9; !i.deferItem(it, "x", []byte(`{}`), &reply{status: 400, fields: fieldsAt("/parent")}) ||
		i.Progress().Complete != 6 {
		t.Errorf("%+v: an interrupted import has to send the deferred object again", i.Progress())
	}
}

func fieldsAt(pointers ...string) (all []errs.Field) {
	for _, pointer := range pointers {
		all = append(all, errs.Field{Pointer: pointer})
	}
	return all
}

// readBody reads the body of a request, and leaves it to be read again.
func readBody(s *server, r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	s.must(err)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}
