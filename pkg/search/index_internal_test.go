package search

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/blevesearch/bleve/v2"
)

// TestAnIndexOfAnotherFormIsBuiltAgain: what another version made of words is not searched by this one's.
func TestAnIndexOfAnotherFormIsBuiltAgain(t *testing.T) {
	folder, s := filepath.Join(t.TempDir(), "index"), Settings{Fields: []string{"title"}}
	x, err := newIndex(folder, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.bleve.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		form int
		same bool
	}{{form, true}, {form + 1, false}, {0, false}} {
		data, err := json.Marshal(state{Form: c.form, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		before, err := bleve.Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		onDisk, b := make(chan struct{}), before.NewBatch()
		b.SetInternal(stateKey, data)
		b.SetPersistedCallback(func(error) { close(onDisk) })
		if err := before.Batch(b); err != nil {
			t.Fatal(err)
		}
		<-onDisk
		if err := before.Close(); err != nil {
			t.Fatal(err)
		}
		opened, ok := openIndex(folder, s)
		if ok != c.same {
			t.Errorf("an index of the form %d is opened: %v", c.form, ok)
		}
		if ok {
			if err := opened.bleve.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
