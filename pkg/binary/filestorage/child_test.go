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
)

// A test binary that has these in its environment does the work that is named
// on a folder, and ends with its parent.
const (
	childWork   = "BELFRY_TEST_WORK"
	childFolder = "BELFRY_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	work := fullWorks[os.Getenv(childWork)]
	if os.Getenv(childWork) == "write" {
		work = writeForEver
	}
	if work == nil {
		os.Exit(m.Run())
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends when the parent has
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

// writeForEver keeps contents, some of them over and over, and prints the hash
// of each when that has been acknowledged.
func writeForEver(folder string) error {
	s, err := filestorage.Open(folder)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				hash, err := keep(s, bytesOf(rand.IntN(200), rand.IntN(1<<20)))
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

// TestKilledProcess kills a process that keeps contents, at any moment: what
// it acknowledged is whole, nothing else than whole contents is seen, and what
// it had not finished goes.
func TestKilledProcess(t *testing.T) {
	folder := t.TempDir()
	acknowledged := map[string]bool{}
	for range 6 {
		killWhileWriting(t, folder, rand.IntN(60), acknowledged)
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
	if len(acknowledged) < 6 {
		t.Errorf("%d contents were acknowledged: too few to tell anything", len(acknowledged))
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
		t.Fatal("the child ended by itself")
	}
}
