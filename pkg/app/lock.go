package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"belfry/pkg/errs"
)

// lockFile is in the data folder. The operating system's lock on it goes with
// the process that holds it, however that ends; its content tells others who
// that is and how to reach it.
const lockFile = "belfry.lock"

// Holder is the process that a data folder belongs to.
type Holder struct {
	PID     int       `json:"pid"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	Doing   string    `json:"doing"`             // the command
	Control string    `json:"control,omitempty"` // where it takes control requests
	Token   string    `json:"token,omitempty"`   // what they must carry
}

// DataLock is the right to use a data folder.
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
		": stop that process or choose another folder with --data"
}

func (h *Held) Unwrap() error { return errs.New(errs.Unavailable, "%s", h.Error()) }

func (h Holder) String() string {
	if h.PID == 0 {
		return "another process"
	}
	data, _ := json.Marshal(h.PID)
	return "belfry " + h.Doing + ", process " + string(data) + " on " + h.Host +
		" since " + h.Started.Local().Format(time.DateTime)
}

// LockData takes a data folder for a command, making the folder if needed.
// It reports *Held when another process has it.
func LockData(folder, doing string) (*DataLock, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't make the data folder %s", folder)
	}
	l := &DataLock{path: filepath.Join(folder, lockFile)}
	l.flock = flock.New(l.path, flock.SetPermissions(0o600))
	taken, err := l.flock.TryLock()
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't lock the data folder %s", folder)
	}
	if !taken {
		return nil, &Held{Folder: folder, Holder: readHolder(l.path)}
	}
	host, _ := os.Hostname()
	l.holder = Holder{PID: os.Getpid(), Host: host, Started: time.Now(), Doing: doing}
	if err := l.write(); err != nil {
		l.Unlock()
		return nil, err
	}
	return l, nil
}

// tell lets others know where control requests are taken.
func (l *DataLock) tell(control, token string) error {
	l.holder.Control, l.holder.Token = control, token
	return l.write()
}

// write replaces the content in place: the lock is on this very file.
func (l *DataLock) write() error {
	data, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	err = os.WriteFile(l.path, append(data, '\n'), 0o600)
	return errs.Wrap(err, errs.Unavailable, "can't write %s", l.path)
}

// Unlock gives the folder up. The file stays: removing it would let two
// processes lock two files of the same name.
func (l *DataLock) Unlock() {
	_ = l.flock.Unlock()
}

func readHolder(path string) Holder {
	var h Holder
	if data, err := os.ReadFile(path); err == nil {
		// Half a file is possible while the holder writes it; then it stays
		// unknown.
		_ = json.Unmarshal(data, &h)
	}
	return h
}
