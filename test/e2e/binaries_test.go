package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/test/kit"
	"belfry/test/process"
)

const filed = `
bus: {listen: ""}
stores:
  Books: {expose: {}}
binaries:
  binary: {map: {Books: [files]}}
`

// uploads are the uploads to one process of belfry: the acknowledged ones, and all
// that were sent until it was killed.
type uploads struct {
	mu   sync.Mutex
	done map[string]string // hash by Location
	sent map[string]bool   // hashes
}

// belfry is killed during uploads: acknowledged uploads exist, others exist
// completely or not at all, and every record has its content.
func TestAcknowledgedUploadsSurviveAKill(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(config, []byte(filed), 0o600); err != nil {
		t.Fatal(err)
	}
	all := &uploads{done: map[string]string{}, sent: map[string]bool{}}
	s := process.Serve(t, config, "--listen", "127.0.0.1:0")
	res, err := http.Post(s.URL+"/books", "application/json", strings.NewReader(`{"uuid":"emma"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	for round := range 4 {
		all.uploadUntilKilled(t, s, 10*(round+1))
		s = process.Serve(t, config, "--listen", "127.0.0.1:0")
		all.check(t, s)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	out, errOut, exit, err := process.Run(process.Commands(t), "verify", "--deep", "--json", "--config", config)
	if err != nil || exit != 0 {
		t.Errorf("verify: exit %d, %v\n%s%s", exit, err, out, errOut)
	}
}

// uploadUntilKilled uploads from several clients and kills belfry once enough
// uploads are acknowledged.
func (u *uploads) uploadUntilKilled(t *testing.T, s *process.Server, answers int) {
	t.Helper()
	answered := make(chan bool, 1000)
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			for u.upload(t, s) {
				answered <- true
			}
		})
	}
	for range answers {
		select {
		case <-answered:
		case <-time.After(kit.Limit):
			t.Fatal("no upload is answered")
		}
	}
	s.Kill()
	clients.Wait()
}

// upload uploads a distinct content, and reports whether it was acknowledged.
func (u *uploads) upload(t *testing.T, s *process.Server) bool {
	content := make([]byte, mathrand.IntN(300<<10))
	_, _ = rand.Read(content)
	sum := sha256.Sum256(content)
	hash := hex.EncodeToString(sum[:])
	u.mu.Lock()
	u.sent[hash] = true
	u.mu.Unlock()
	req, err := http.NewRequest(http.MethodPut, s.URL+"/binary/upload/Books/emma/files/add", bytes.NewReader(content))
	if err != nil {
		t.Error(err)
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated {
		t.Errorf("upload: %s", res.Status)
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.done[res.Header.Get("Location")] = hash
	return true
}

// check compares the files of belfry with the uploads.
func (u *uploads) check(t *testing.T, s *process.Server) {
	t.Helper()
	for location, hash := range u.done {
		if got := contentAt(t, s, location); got != hash {
			t.Errorf("%s was acknowledged with %s and has %s", location, hash, got)
		}
	}
	var book struct{ Files []struct{ Hash string } }
	res, err := http.Get(s.URL + "/books/emma")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&book); err != nil {
		t.Fatal(err)
	}
	for i, f := range book.Files {
		location := fmt.Sprintf("/binary/Books/emma/files/%d", i)
		if got := contentAt(t, s, location); got != f.Hash || !u.sent[got] {
			t.Errorf("%s has the record %s and the content %s", location, f.Hash, got)
		}
		u.done[location] = f.Hash
	}
}

func contentAt(t *testing.T, s *process.Server, location string) string {
	t.Helper()
	res, err := http.Get(s.URL + location)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("GET %s: %s, %v", location, res.Status, err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
