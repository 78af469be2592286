package modeling

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/internal/smallfile"
	"belfry/pkg/api/console"
	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// journalFolder, in the data folder, has the latest changes with the files as they were before.
const journalFolder = "configuration"

const (
	maxKept  = 20       // changes
	maxEntry = 64 << 20 // bytes of one
	entryExt = ".json"
)

// entry is a change in the journal. It is written before the files, and again once the change is complete.
type entry struct {
	Number  int                `json:"number"`
	At      time.Time          `json:"at"`
	By      console.ModelActor `json:"by"`
	Keys    []string           `json:"keys"`
	Undoes  int                `json:"undoes,omitempty"`
	Pending bool               `json:"pending,omitempty"` // the process ended, or will end, before it is complete
	Silent  bool               `json:"silent,omitempty"`  // its event is not in the outbox yet
	Files   []fileEntry        `json:"files"`
	Secrets []fileEntry        `json:"secrets,omitempty"` // those of this change and of earlier ones, as far as they exist
}

// fileEntry is a file of a change.
type fileEntry struct {
	Path    string      `json:"path"`
	Existed bool        `json:"existed"`
	Before  []byte      `json:"before,omitempty"`
	After   string      `json:"after"` // the digest of the new content; "" if the change removes the file
	Mode    fs.FileMode `json:"mode,omitempty"`
	Secret  bool        `json:"secret,omitempty"`
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// current reports whether the file has the content that the change has written.
func (f fileEntry) current() bool {
	content, err := smallfile.Read(f.Path, maxEntry)
	if f.After == "" {
		return errors.Is(err, fs.ErrNotExist)
	}
	return err == nil && digestOf(content) == f.After
}

// restore makes a file as it was before, unless someone else has changed it since.
func (f fileEntry) restore() error {
	switch {
	case !f.current():
		return nil
	case !f.Existed:
		return remove(f.Path)
	default:
		return replace(f.Path, f.Before, f.Mode)
	}
}

// restore makes all files of a change as they were before, the last one first.
func (j *entry) restore() (err error) {
	for _, f := range slices.Backward(j.Files) {
		err = errors.Join(err, f.restore())
	}
	return err
}

// journal is the folder of entries.
type journal struct{ folder string }

func journalIn(data string) journal { return journal{filepath.Join(data, journalFolder)} }

// numbers returns the numbers of the entries, the oldest first.
func (j journal) numbers() (all []int, err error) {
	files, err := os.ReadDir(j.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, f := range files {
		var n int
		name, is := strings.CutSuffix(f.Name(), entryExt)
		if _, scanned := fmt.Sscanf(name, "%d", &n); is && scanned == nil && j.name(n) == f.Name() {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

func (journal) name(number int) string { return fmt.Sprintf("%06d%s", number, entryExt) }

func (j journal) get(number int) (*entry, error) {
	text, err := smallfile.Read(filepath.Join(j.folder, j.name(number)), maxEntry)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "there is no change %d; the latest %d are kept", number, maxKept)
	}
	e := &entry{}
	if err == nil {
		err = json.Unmarshal(text, e)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "change %d of the configuration can't be read", number)
	}
	return e, nil
}

// all returns the entries, the newest first.
func (j journal) all() ([]*entry, error) {
	numbers, err := j.numbers()
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the changes of the configuration can't be read")
	}
	slices.Reverse(numbers)
	var all []*entry
	for _, n := range numbers {
		e, err := j.get(n)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

func (j journal) put(e *entry) error {
	if err := os.MkdirAll(j.folder, 0o700); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the data folder can't be written")
	}
	text, err := json.Marshal(e)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "a change of the configuration can't be encoded")
	}
	return hold.WriteDurably(j.folder, j.name(e.Number), text)
}

func (j journal) remove(number int) error {
	if err := os.Remove(filepath.Join(j.folder, j.name(number))); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the data folder can't be written")
	}
	return hold.SyncFolder(j.folder)
}

// prune removes the oldest entries. It returns the secrets that the configuration or an entry names, and removes the
// files of the others. A file that can't be removed now is removed after a later change.
func (j journal) prune(text []byte, secrets []fileEntry) (kept []fileEntry) {
	all, err := j.all()
	if err != nil {
		return secrets
	}
	for _, e := range all[min(maxKept, len(all)):] {
		if j.remove(e.Number) != nil {
			return secrets
		}
	}
	named := [][]byte{text}
	for _, e := range all[:min(maxKept, len(all))] {
		for _, f := range e.Files {
			named = append(named, f.Before)
		}
	}
	for _, f := range secrets {
		if slices.ContainsFunc(named, func(t []byte) bool { return bytes.Contains(t, []byte(reference(f.Path))) }) {
			kept = append(kept, f)
		} else if f.current() {
			_ = remove(f.Path)
		}
	}
	return kept
}
