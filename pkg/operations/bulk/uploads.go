package bulk

import (
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/table"
)

// Bounds of the files that wait to be imported.
const (
	MaxUpload  = 256 << 20 // bytes of a file
	maxUploads = 8         // files of all admins
	maxRefused = 16 << 20  // bytes of the list of what an import has refused
	keepFor    = time.Hour
)

// Uploads are the files of imports, one for each admin, and the list of what the last import has refused. The files
// have no names: so nothing of them is left when the process ends, however it does. Safe for concurrent use.
type Uploads struct {
	folder string

	mu       sync.Mutex
	byAdmin  map[string]*Upload
	arriving int
	refused  *refusals
	closed   bool
}

// Upload is a file that an admin has chosen for an import.
type Upload struct {
	ID, Store, Name string
	Size            int64
	table.Info

	admin   string
	file    *os.File
	mapping table.Mapping // guarded by Uploads.mu, as the fields below
	users   int           // runs that read it
	removed bool
	expires *time.Timer
}

// NewUploads returns uploads that are kept in a folder, which is created when it is needed.
func NewUploads(folder string) *Uploads {
	return &Uploads{folder: folder, byAdmin: map[string]*Upload{}}
}

// temporary returns a file without a name.
func (u *Uploads) temporary() (*os.File, error) {
	if err := os.MkdirAll(u.folder, 0o700); err != nil {
		return nil, unkept(err)
	}
	f, err := os.CreateTemp(u.folder, "import-*")
	if err != nil {
		return nil, unkept(err)
	}
	if err := os.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		_ = f.Close()
		return nil, unkept(err)
	}
	return f, nil
}

func unkept(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the file can't be kept until it is imported: is the disk full?")
}

// Add keeps a file of an admin, in place of the one before, after it has read all of it. separator is that of CSV; 0:
// it is found out. Errors: TooLarge, Conflict while too many files wait, those of table.Inspect, and of reading body.
func (u *Uploads) Add(admin, store, name string, separator rune, body io.Reader) (*Upload, error) {
	if err := u.begin(admin); err != nil {
		return nil, err
	}
	up := &Upload{ID: object.NewUUID(), Store: store, Name: name, admin: admin}
	err := u.receive(up, separator, body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arriving--
	if err == nil && u.closed {
		err = errs.New(errs.Unavailable, "belfry is stopping")
	}
	if err != nil {
		if up.file != nil {
			_ = up.file.Close()
		}
		return nil, err
	}
	u.remove(admin, u.byAdmin[admin])
	u.byAdmin[admin] = up
	up.expires = time.AfterFunc(keepFor, func() { u.Remove(admin, up.ID) })
	return up, nil
}

// begin counts a file that arrives.
func (u *Uploads) begin(admin string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	others := len(u.byAdmin) + u.arriving
	if u.byAdmin[admin] != nil {
		others--
	}
	if others >= maxUploads {
		return errs.New(errs.Conflict, "%d files of other admins wait to be imported: try again later", others)
	}
	u.arriving++
	return nil
}

// receive copies a file to the disk, and inspects it.
func (u *Uploads) receive(up *Upload, separator rune, body io.Reader) (err error) {
	if up.file, err = u.temporary(); err != nil {
		return err
	}
	to := &kept{to: up.file}
	switch up.Size, err = io.Copy(to, io.LimitReader(body, MaxUpload+1)); {
	case to.err != nil:
		return unkept(to.err)
	case err != nil:
		return err
	case up.Size > MaxUpload:
		return errs.New(errs.TooLarge, "the file has more than %d MiB: split it", MaxUpload>>20)
	}
	up.Info, err = table.Inspect(up.content(), up.Name, separator)
	return err
}

// kept is a file that knows that it could not be written, as opposed to what was not read.
type kept struct {
	to  *os.File
	err error
}

// Write implements io.Writer.
func (k *kept) Write(p []byte) (int, error) {
	n, err := k.to.Write(p)
	k.err = err
	return n, err
}

// content returns a reader of the whole file.
func (up *Upload) content() io.Reader { return io.NewSectionReader(up.file, 0, up.Size) }

// Of returns the file of an admin for a store, nil for none, and how it is imported.
func (u *Uploads) Of(admin, store string) (*Upload, table.Mapping) {
	u.mu.Lock()
	defer u.mu.Unlock()
	up := u.byAdmin[admin]
	if up == nil || up.Store != store {
		return nil, nil
	}
	return up, up.mapping
}

// Map sets how a file is imported; a run that has begun does not change.
func (u *Uploads) Map(up *Upload, m table.Mapping) {
	u.mu.Lock()
	defer u.mu.Unlock()
	up.mapping = m
}

// Remove removes a file of an admin, once no run reads it.
func (u *Uploads) Remove(admin, id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up := u.byAdmin[admin]; up != nil && up.ID == id {
		u.remove(admin, up)
	}
}

func (u *Uploads) remove(admin string, up *Upload) {
	if up == nil {
		return
	}
	delete(u.byAdmin, admin)
	up.expires.Stop()
	if up.removed = true; up.users == 0 {
		_ = up.file.Close()
	}
}

// open returns a file of an admin for a run, which calls done at its end.
func (u *Uploads) open(admin, id string) (up *Upload, m table.Mapping, done func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up = u.byAdmin[admin]; up == nil || up.ID != id {
		return nil, nil, nil, errs.New(errs.Invalid, "the file is not here: it has been imported, removed or "+
			"replaced, or another process of belfry has received it. Choose it again")
	}
	up.users++
	return up, up.mapping, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if up.users--; up.users == 0 && up.removed {
			_ = up.file.Close()
		}
	}, nil
}

// Close removes all files.
func (u *Uploads) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for admin, up := range u.byAdmin {
		u.remove(admin, up)
	}
	u.refused.close()
	u.refused = nil
}

// refusals are what an import has refused, as CSV.
type refusals struct {
	id   string // of the file
	mu   sync.Mutex
	file *os.File
	size int64
	full bool
	csv  *csv.Writer
}

// record begins the list of what the import of a file refuses, in place of the one before.
func (u *Uploads) record(id string) (*refusals, error) {
	f, err := u.temporary()
	if err != nil {
		return nil, err
	}
	r := &refusals{id: id, file: f}
	r.csv = csv.NewWriter(r)
	_ = r.csv.Write([]string{"line", "column", "uuid", "reason"}) // it is in the memory of the writer
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused.close()
	u.refused = r
	return r, nil
}

// add adds an object that was refused. The list ends where it can no longer be written.
func (r *refusals) add(of Refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return
	}
	line := ""
	if of.Line > 0 {
		line = strconv.FormatInt(of.Line, 10)
	}
	_ = r.csv.Write([]string{line, table.Harmless(of.Column), table.Harmless(of.UUID), table.Harmless(of.Reason)})
	r.csv.Flush()
	r.full = r.csv.Error() != nil
}

// Write implements io.Writer.
func (r *refusals) Write(p []byte) (int, error) {
	if r.size+int64(len(p)) > maxRefused {
		return 0, io.ErrShortWrite
	}
	n, err := r.file.WriteAt(p, r.size)
	r.size += int64(n)
	return n, err
}

func (r *refusals) close() {
	if r != nil {
		_ = r.file.Close()
	}
}

// Samples returns the first rows of a file.
func (u *Uploads) Samples(up *Upload, most int) (all []table.Row, err error) {
	_, _, done, err := u.open(up.admin, up.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	rows, err := up.Open(up.content())
	for err == nil && len(all) < most {
		var row table.Row
		if row, err = rows.Next(); err == nil {
			all = append(all, row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// HasRefused reports whether this process has the list of what the import of a file has refused.
func (u *Uploads) HasRefused(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.refused != nil && u.refused.id == id
}

// Refused writes what the import of a file has refused as CSV, if this process has imported it.
func (u *Uploads) Refused(id string, to io.Writer) (found bool, err error) {
	u.mu.Lock()
	r := u.refused
	u.mu.Unlock()
	if r == nil || r.id != id {
		return false, nil
	}
	r.mu.Lock()
	size := r.size
	r.mu.Unlock()
	_, err = io.Copy(to, io.NewSectionReader(r.file, 0, size))
	return true, err
}
