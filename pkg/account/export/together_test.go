package export_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"belfry/pkg/account/export"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
	"belfry/test/model"
)

// Objects are read together, as many as fit, and are in the archive in the order of their uuids.
func TestAnExportReadsSomeObjectsAtOnce(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		name         string
		bytes, wants int
	}{{"small objects", 10, 16}, {"large objects", 200 << 10, 5}} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const notes = 20
				f := &fixture{T: t}
				var inFlight atomic.Int64
				var gate chan struct{}
				backend := &model.Hooked{Backend: model.NewMemory(), BeforeGet: func(context.Context, string, string) error {
					if gate != nil {
						inFlight.Add(1)
						<-gate
						inFlight.Add(-1)
					}
					return nil
				}}
				s, err := store.Open(t.Context(), backend, store.Options{
					Name: "Notes", Indexes: []query.Index{{Name: "user", Fields: []string{"user"}}},
				})
				f.must(err)
				for i := range notes {
					_, err := s.Save(t.Context(), object.Object{
						"user": []byte(`"ada"`), "text": object.AppendString(nil, strings.Repeat("x", one.bytes)),
					}, fmt.Sprintf("n%02d", i))
					f.must(err)
				}
				gate = make(chan struct{})
				exporter := export.New(export.Options{Sources: []export.Source{{Store: s, Owner: "user"}}})
				var b bytes.Buffer
				done := make(chan error, 1)
				go func() { done <- exporter.Write(as(t.Context(), "ada"), &b, "ada", "") }()
				most := int64(0)
				for range notes {
					synctest.Wait()
					most = max(most, inFlight.Load())
					gate <- struct{}{}
				}
				f.must(<-done)
				if most != int64(one.wants) {
					t.Errorf("%d objects were read at once, want %d", most, one.wants)
				}
				at := 0
				for i := range notes {
					next := strings.Index(f.read(b.Bytes()).content["Notes.jsonl"], fmt.Sprintf(`"uuid":"n%02d"`, i))
					if next < at {
						t.Errorf("note %d is at byte %d, the one before at %d", i, next, at)
					}
					at = next
				}
			})
		})
	}
}
