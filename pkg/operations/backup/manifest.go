package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Format is the version of the format of backups that this package writes. It reads
// only this one.
const Format = 1

// Part is a content of the destination.
type Part struct {
	Hash string `json:"hash"` // SHA-256, which every read checks
	Size int64  `json:"size"`
}

// Manifest is the list of the parts of one backup.
type Manifest struct {
	ID           string     `json:"id"`
	Installation string     `json:"installation"` // of whose data it is
	Version      string     `json:"version"`      // of the belfry that made it
	Started      time.Time  `json:"started"`      // every write that was acknowledged before is in it
	Ended        time.Time  `json:"ended"`
	Size         int64      `json:"size"`  // bytes of all parts, and contents of binaries
	Added        int64      `json:"added"` // bytes that no earlier backup had
	Backends     []Backend  `json:"backends"`
	Streams      []Stream   `json:"streams"`
	Binaries     []Binaries `json:"binaries"`
	Problems     []string   `json:"problems,omitempty"` // contents of binaries that are damaged, and not in it
}

// Backend are the stores of one backend: the files of a checkpoint, or records.
type Backend struct {
	Name    string    `json:"name"`
	Stores  []string  `json:"stores"`
	Files   []File    `json:"files,omitempty"`
	Records []Records `json:"records,omitempty"`
}

// File is a file of a checkpoint.
type File struct {
	Name     string `json:"name"` // a path with slashes, below the folder of the backend
	Modified int64  `json:"modified"`
	Part
}

// Records are those of one store.
type Records struct {
	Store   string `json:"store"`
	Objects int64  `json:"objects"`
	Chunks  []Part `json:"chunks"`
	Pending []Part `json:"pending,omitempty"` // events, and the tombstones that have some
}

// Stream is a stream of the bus.
type Stream struct {
	Name      string     `json:"name"`
	Created   time.Time  `json:"created"` // identifies it
	Before    uint64     `json:"before"`  // the last sequence before the stores were read
	Messages  int64      `json:"messages"`
	Chunks    []LogChunk `json:"chunks"`
	Consumers []Consumer `json:"consumers,omitempty"`
}

// LogChunk has consecutive messages of a stream.
type LogChunk struct {
	First    uint64 `json:"first"` // sequences
	Last     uint64 `json:"last"`
	Messages int64  `json:"messages"`
	Complete bool   `json:"complete,omitempty"` // no message is added to it
	Part
}

// Consumer is a durable consumer of the log.
type Consumer struct {
	Config jetstream.ConsumerConfig `json:"config"`
	Done   uint64                   `json:"done"` // every event up to this sequence is handled
}

// Binaries are the contents of one service.
type Binaries struct {
	Name     string `json:"name"`
	Contents int64  `json:"contents"`
	Bytes    int64  `json:"bytes"`
	Lists    []Part `json:"lists"` // of hashes
}

// eachPart calls a function with every part that the manifest itself names.
func (m *Manifest) eachPart(do func(what string, p Part) error) error {
	for _, b := range m.Backends {
		for _, f := range b.Files {
			if err := do("file "+f.Name+" of backend "+b.Name, f.Part); err != nil {
				return err
			}
		}
		for _, r := range b.Records {
			for _, p := range slices.Concat(r.Chunks, r.Pending) {
				if err := do("records of "+r.Store, p); err != nil {
					return err
				}
			}
		}
	}
	for _, s := range m.Streams {
		for _, c := range s.Chunks {
			if err := do("messages of stream "+s.Name, c.Part); err != nil {
				return err
			}
		}
	}
	for _, b := range m.Binaries {
		for _, p := range b.Lists {
			if err := do("list of the contents of "+b.Name, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// The names of documents.
const (
	manifestPrefix = "backup-"
	manifestSuffix = ".json"
)

// idFormat is the form of the id of a backup: its time, and a part that is random.
var idFormat = regexp.MustCompile(`^\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{8}$`)

const idTime = "20060102T150405.000Z"

// timeOf returns when a backup was started, by its id.
func timeOf(id string) time.Time {
	at, _ := time.Parse(idTime, strings.SplitN(id, "-", 2)[0])
	return at
}

// header is the first line of a manifest, which every later version can read.
type header struct {
	Format int    `json:"belfry-backup"`
	SHA256 string `json:"sha256"` // of the rest
}

func (m *Manifest) encode() ([]byte, error) {
	body, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	head, err := json.Marshal(header{Format: Format, SHA256: hex.EncodeToString(sum[:])})
	return append(append(head, '\n'), body...), err
}

// decodeManifest checks a manifest completely: its names are used as paths.
func decodeManifest(id string, data []byte) (*Manifest, error) {
	first, body, _ := bytes.Cut(data, []byte("\n"))
	var head header
	if err := json.Unmarshal(first, &head); err != nil || head.Format == 0 {
		return nil, damaged(id, "its manifest has no header")
	}
	if head.Format != Format {
		return nil, errs.New(errs.Invalid, "the backup %s has format %d, and this version of belfry reads format %d: "+
			"restore it with the version of belfry that made it", id, head.Format, Format)
	}
	sum := sha256.Sum256(body)
	if hex.EncodeToString(sum[:]) != head.SHA256 {
		return nil, damaged(id, "its manifest does not have the hash that it should have")
	}
	m := &Manifest{}
	if err := json.Unmarshal(body, m); err != nil || m.ID != id {
		return nil, damaged(id, "its manifest can't be read")
	}
	if how := m.wrong(); how != "" {
		return nil, damaged(id, "its manifest "+how)
	}
	return m, m.eachPart(func(what string, p Part) error {
		if !driver.ValidHash(p.Hash) || p.Size < 0 {
			return damaged(id, "its manifest has no valid hash for "+what)
		}
		return nil
	})
}

// wrong names content of a manifest that no backup has; "" without any. A restore writes the files, stores, streams and
// services that it names, each once.
func (m *Manifest) wrong() string {
	once := map[string]bool{}
	twice := func(kind, name string) bool {
		key := kind + " " + name
		before := once[key]
		once[key] = true
		return before
	}
	for _, b := range m.Backends {
		if twice("backend", b.Name) {
			return "has the backend " + strconv.Quote(b.Name) + " twice"
		}
		for _, f := range b.Files {
			if f.Name == "" || f.Name == "." || path.Clean("/" + f.Name)[1:] != f.Name ||
				strings.ContainsAny(f.Name, "\\:\x00") {
				return "names a file outside of the folder: " + strconv.Quote(f.Name)
			}
			if twice("file of "+b.Name, f.Name) {
				return "has the file " + strconv.Quote(f.Name) + " twice"
			}
		}
		for _, r := range b.Records {
			if !slices.Contains(b.Stores, r.Store) || len(b.Files) > 0 || twice("store", r.Store) {
				return "has records of the store " + strconv.Quote(r.Store) + " where none belong"
			}
		}
	}
	for _, s := range m.Streams {
		if !slices.Contains(streams(), s.Name) || twice("stream", s.Name) {
			return "has the stream " + strconv.Quote(s.Name) + ", which is not belfry's or is listed twice"
		}
	}
	for _, b := range m.Binaries {
		if twice("binaries", b.Name) {
			return "has the binary service " + strconv.Quote(b.Name) + " twice"
		}
	}
	return ""
}

func damaged(id, how string) error {
	return errs.New(errs.Internal, "the backup %s is damaged: %s; use another one: `belfry backup list` shows them", id,
		how)
}
