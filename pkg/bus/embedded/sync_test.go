package embedded

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/test/kit/natsserver"
)

// streamFolder makes what the server's files of the streams look like.
func streamFolder(t *testing.T) (root, block string) {
	t.Helper()
	root = t.TempDir()
	for _, stream := range []string{bus.StreamEvents, bus.StreamDead, bus.StreamRetry} {
		if err := os.MkdirAll(filepath.Join(root, stream, "msgs"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	block = filepath.Join(root, bus.StreamEvents, "msgs", "1.blk")
	write(t, block, "one")
	return root, block
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSyncKnowsWhatHasChanged(t *testing.T) {
	root, block := streamFolder(t)
	var s syncer
	if err := s.sync(root); err != nil {
		t.Fatal(err)
	}
	first := s.seen[block]
	if first.size != 3 || len(s.seen) != 1 {
		t.Fatalf("after the first sync: %v", s.seen)
	}
	write(t, block, "one, two")
	second := filepath.Join(filepath.Dir(block), "2.blk")
	write(t, second, "three")
	if err := s.sync(root); err != nil {
		t.Fatal(err)
	}
	if s.seen[block] == first || s.seen[second].size != 5 {
		t.Errorf("a block that grew and a new one are synced: %v", s.seen)
	}
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	if err := s.sync(root); err != nil {
		t.Fatal(err)
	}
	if _, known := s.seen[block]; known || len(s.seen) != 1 {
		t.Errorf("a block that has expired is forgotten: %v", s.seen)
	}
}

func TestSyncFailsWhenTheFilesAreNotThere(t *testing.T) {
	var s syncer
	if err := s.sync(t.TempDir()); err == nil {
		t.Error("nothing was synced, and no error is returned")
	}
}

// TestSyncFindsTheServersFiles holds the layout of the embedded server's
// folder to what Sync expects.
func TestSyncFindsTheServersFiles(t *testing.T) {
	server := New(Options{Folder: t.TempDir()})
	b, err := bus.Open(t.Context(), bus.Options{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	e := bus.Event{ID: "1", Subject: event.Subject(event.StoreSaved, "Users", "u"), Payload: []byte("{}")}
	natsserver.Publish(t, b, e)
	if err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	var written int64
	for path, state := range server.syncer.seen {
		if filepath.Base(filepath.Dir(filepath.Dir(path))) == bus.StreamEvents &&
			time.Since(state.changed) < time.Minute {
			written += state.size
		}
	}
	if written == 0 {
		t.Errorf("no block of %s with something in it was synced: %v", bus.StreamEvents, server.syncer.seen)
	}
}
