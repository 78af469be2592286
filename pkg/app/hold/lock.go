// Package hold has the lock of a data folder, the files that describe the folder's state, and the requests of commands
// to the process that holds it.
package hold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/pkg/errs"
)

// DoingServe marks a belfry that serves in its lock file. Other holders are commands, which end.
const DoingServe = "serve"

// MayEnd reports whether it makes sense to wait for a folder: a belfry that serves it does not end by itself.
func (h Holder) MayEnd() bool { return h.PID != 0 && h.Doing != DoingServe }

// LockFile is in the data folder. The operating system releases the lock on it when the process that holds it ends,
// also by a crash. Its content names the process and its control address.
const LockFile = "belfry.lock"

// Holder is the process that holds a data folder.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	Doing   string    `json:"doing"`             // the command
	Control string    `json:"control,omitempty"` // URL of its control server
	Token   string    `json:"token,omitempty"`   // of control requests
}

// DataLock is the exclusive lock of a data folder.
type DataLock struct {
	flock  *flock.Flock
	path   string
	holder Holder
}

// Held is the error for a data folder that another process uses.
type Held struct {
	Folder string
	Holder Holder
}

func (h *Held) Error() string {
	return "the data folder " + h.Folder + " is in use by " + h.Holder.String() +
		": stop that process or choose another folder: data in the configuration, or --data"
}

func (h *Held) Unwrap() error { return errs.New(errs.Unavailable, "%s", h.Error()) }

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("belfry %s, process %d on %s since %s", h.Doing, h.PID, h.Host,
		h.Started.Local().Format(time.DateTime))
}

// LockData locks a data folder for a command, and creates the folder if needed. It returns *Held if
// another process holds it, and an error if it has a part of a backup.
func LockData(folder, doing string) (*DataLock, error) {
	l, err := LockFolder(folder, doing)
	if err != nil {
		return nil, err
	}
	if err := CheckComplete(folder); err != nil {
		l.Unlock()
		return nil, err
	}
	return l, nil
}

// LockFolder is LockData also for a folder with a part of a backup.
func LockFolder(folder, doing string) (*DataLock, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't create the data folder %s; choose another with --data",
			folder)
	}
	isNew := !isUsed(folder)
	l := &DataLock{path: filepath.Join(folder, LockFile)}
	l.flock = flock.New(l.path, flock.SetPermissions(0o600))
	taken, err := l.flock.TryLock()
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't lock the data folder %s; choose another with --data",
			folder)
	}
	if !taken {
		return nil, &Held{Folder: folder, Holder: ReadHolder(l.path)}
	}
	host, _ := os.Hostname()
	l.holder = Holder{PID: os.Getpid(), Host: host, Started: time.Now(), Doing: doing}
	if err := l.write(); err != nil {
		l.Unlock()
		return nil, err
	}
	if isNew {
		_ = SetReported(folder) // otherwise the first start would report changes since an earlier release
	}
	return l, nil
}

// HolderOf returns the process that holds a data folder; nil if none does. It writes nothing into the folder, which may
// belong to another program.
func HolderOf(folder string) (*Holder, error) {
	path := filepath.Join(folder, LockFile)
	probe := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := probe.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, errs.Wrap(err, errs.Unavailable, "can't read the lock of the data folder %s", folder)
	case free:
		_ = probe.Unlock()
		return nil, nil
	}
	h := ReadHolder(path)
	return &h, nil
}

// Publish writes the address and the token of the control server.
func (l *DataLock) Publish(control, token string) error {
	l.holder.Control, l.holder.Token = control, token
	return l.write()
}

// write replaces the content in place, since the lock is on this file.
func (l *DataLock) write() error {
	data, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	return errs.Wrap(overwrite(l.path, append(data, '\n')), errs.Unavailable, "can't write %s", l.path)
}

// overwrite replaces the content of a file without needing space. If the file were truncated first, it would lose its
// block, which another file could take on a full disk.
func overwrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.WriteAt(data, 0); err == nil {
		err = f.Truncate(int64(len(data)))
	}
	return errors.Join(err, f.Close())
}

// Unlock releases the folder. The file stays: if it were removed, two processes could lock two files of the same name.
// Unlock clears its content, so that it does not name this process until the next holder has written to it.
func (l *DataLock) Unlock() {
	if l.flock.Locked() {
		_ = overwrite(l.path, []byte("{}\n"))
	}
	_ = l.flock.Unlock()
}

// ReadHolder reads which process holds the folder. If the file is incomplete because that process is writing it, or has
// other content, the holder is unknown.
func ReadHolder(path string) Holder {
	data, err := os.ReadFile(path)
	if err != nil {
		return Holder{}
	}
	var h Holder
	if json.Unmarshal(data, &h) != nil || h.PID <= 0 || h.Doing == "" || h.Host == "" || h.Started.IsZero() {
		return Holder{}
	}
	if !onThisMachine(h.Control) {
		// Another host must not receive the token.
		h.Control, h.Token = "", ""
	}
	return h
}

// onThisMachine reports whether a URL can be that of a control server of this machine.
func onThisMachine(control string) bool {
	u, err := url.Parse(control)
	if err != nil || u.Scheme != "http" || u.User != nil || u.Path != "" {
		return false
	}
	address, err := netip.ParseAddrPort(u.Host)
	return err == nil && address.Addr().IsLoopback()
}
