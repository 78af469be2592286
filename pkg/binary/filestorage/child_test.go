package filestorage_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"

	"belfry/pkg/binary/filestorage"
	"belfry/test/kit"
)

// A test binary with these variables in its environment does the named work on a
// folder, and ends with its parent.
const (
	childWork   = "BELFRY_TEST_WORK"
	childFolder = "BELFRY_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	work := fullWorks[os.Getenv(childWork)]
	if os.Getenv(childWork) == "write" {
		work = writeForever
	}
	if work == nil {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(1)
	}()
	if err := work(os.Getenv(childFolder)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child makes the command for a work.
func child(t *testing.T, work, folder string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childWork+"="+work, childFolder+"="+folder)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// writeForever stores contents, some of them repeatedly, and prints the hash of
// each once it is acknowledged.
func writeForever(folder string) error {
	s, err := filestorage.Open(folder)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				hash, err := keep(s, bytesOf(rand.IntN(200), rand.IntN(1<<18)))
				if err != nil {
					failed <- err
					return
				}
				mu.Lock()
				fmt.Println(hash)
				mu.Unlock()
			}
		}()
	}
	return <-failed
}

func bytesOf(seed, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(data)
	return data
}

func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A process that stores contents is killed at random moments. What it has
// acknowledged is complete, every listed content is complete, and the stages that
// it left are removed.
func TestSoakKilledProcess(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	acknowledged := map[string]bool{}
	run := kit.Soak(t, 3)
	for run.More() {
		killWhileWriting(t, folder, run.Rand().IntN(40), acknowledged)
	}
	s := open(t, folder)
	listed := map[string]bool{}
	for _, info := range list(t, s) {
		listed[info.Hash] = true
		if data := read(t, s, info.Hash); hashOf(data) != info.Hash || int64(len(data)) != info.Size {
			t.Errorf("%+v is listed and has %d bytes that do not match", info, len(data))
		}
	}
	for hash := range acknowledged {
		if !listed[hash] {
			t.Errorf("%s was acknowledged and is not there", hash)
		}
	}
	if len(acknowledged) < min(run.Round(), 100) {
		t.Errorf("only %d contents were acknowledged", len(acknowledged))
	}
	tidy(t, s)
	if left, err := os.ReadDir(folder + "/tmp"); err != nil || len(left) > 0 {
		t.Errorf("%d stages are left, error %v", len(left), err)
	}
}

// killWhileWriting kills the child after it has acknowledged some contents.
func killWhileWriting(t *testing.T, folder string, after int, acknowledged map[string]bool) {
	t.Helper()
	cmd := child(t, "write", folder)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if len(lines.Text()) == 64 { // the last line may be cut
			acknowledged[lines.Text()] = true
		}
		if n == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the child ended before it was killed")
	}
}
