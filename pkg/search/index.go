package search

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/mapping"
	"github.com/blevesearch/bleve/v2/search/query"
	index "github.com/blevesearch/bleve_index_api"
	"go.etcd.io/bbolt"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

// position is up to where an index has followed the log.
type position struct {
	Log      time.Time `json:"log"` // when the log was created, which identifies it
	Sequence uint64    `json:"sequence"`
	Mark     uint64    `json:"mark,omitempty"` // of the event at the sequence: see eventlog.Mark; 0: it is not known
}

// form is the version of how words are made of objects, and of how bleve has them: an index of another one is
// built again, and one of the former is searched until then.
const form = 3

// state is the stored description of an index.
type state struct {
	Form     int      `json:"form"`
	Settings Settings `json:"settings"`
	position
}

// stateKey is the key of the state of an index. An index whose build is incomplete lacks it.
var stateKey = []byte("belfry")

// textIndex is an index on disk.
type textIndex struct {
	bleve    bleve.Index
	store    *store.Store // whose objects it has
	folder   string
	form     int
	settings Settings
	at       atomic.Pointer[position]
	stored   position     // as it is in the index; used only by its writer
	waiting  atomic.Int64 // writes that are not on disk yet
	scored   atomic.Int64 // documents, by searches of what a caller may list
}

// newIndex makes an empty index in a folder that does not exist.
func newIndex(folder string, s Settings) (*textIndex, error) {
	b, err := bleve.NewUsing(folder, mappingOf(s), bleve.Config.DefaultIndexType, bleve.Config.DefaultKVStore,
		writing())
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "the search index %s can't be made", folder)
	}
	return &textIndex{bleve: b, folder: folder, form: form, settings: s}, nil
}

// openIndex opens an index that was built to the end and may answer until an index of these settings exists. Else it
// returns false.
func openIndex(folder string, s Settings) (*textIndex, bool) {
	b, ok := openBleve(folder)
	if !ok {
		return nil, false
	}
	var has state
	data, err := b.GetInternal(stateKey)
	if err != nil || json.Unmarshal(data, &has) != nil || has.Form != form && has.Form != formerForm ||
		!has.Settings.answer(s) {
		_ = b.Close() // nothing was written
		return nil, false
	}
	x := &textIndex{bleve: b, folder: folder, form: has.Form, settings: has.Settings, stored: has.position}
	x.at.Store(&has.position)
	return x, true
}

// openBleve opens an index with any content; false if it can't be read.
func openBleve(folder string) (b bleve.Index, ok bool) {
	config := writing()
	config["bolt_timeout"] = lockTimeout.String()
	err := caught(func() (err error) {
		// bbolt panics if a part of its file is damaged, and reads beyond its end if one is missing.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		if err := readRoot(filepath.Join(folder, "store", "root.bolt")); err != nil {
			return err
		}
		b, err = bleve.OpenUsing(folder, config)
		return err
	})
	return b, err == nil
}

// readRoot reads all of the file that lists the parts of an index. bleve reads some of it in goroutines of its own,
// where a fault would end the process.
func readRoot(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	return db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return readBucket(b) })
	})
}

func readBucket(b *bbolt.Bucket) error {
	return b.ForEach(func(key, value []byte) error {
		if within := b.Bucket(key); within != nil {
			return readBucket(within)
		}
		_ = bytes.Clone(value) // all of it is read
		return nil
	})
}

// lockTimeout is for the lock of an index, which another process would have by mistake only.
const lockTimeout = 5 * time.Second

// answer reports whether an index with these settings may answer until one with others exists: it has the same objects
// under the same rule, and all fields that a search may name.
func (s Settings) answer(others Settings) bool {
	lacks := func(field string) bool { return !slices.Contains(s.Fields, field) }
	return s.Backend == others.Backend && s.Rule == others.Rule && !slices.ContainsFunc(others.Fields, lacks)
}

// is reports whether the index has these settings.
func (x *textIndex) is(s Settings) bool { return x.form == form && reflect.DeepEqual(x.settings, s) }

// writing configures how bleve writes: several writes at once in the background, with retries. After a crash, the index
// follows the lost writes again, because they contain the position. If writes waited for the disk, bleve would remove a
// failed one from the data that is being searched, and the search would panic.
func writing() map[string]any {
	return map[string]any{"unsafe_batch": true,
		"scorchPersisterOptions": map[string]any{"PersisterNapTimeMSec": 50, "PersisterNapUnderNumFiles": 1000}}
}

// mappingOf returns how bleve indexes a document of documentOf: nothing of it is stored.
func mappingOf(s Settings) mapping.IndexMapping {
	m := bleve.NewIndexMapping()
	m.ScoringModel = index.BM25Scoring
	m.DefaultMapping = bleve.NewDocumentStaticMapping()
	m.DefaultMapping.AddSubDocumentMapping("_all", bleve.NewDocumentDisabledMapping()) // which nobody searches
	for i := range s.Fields {
		f := bleve.NewTextFieldMapping()
		f.Analyzer, f.Store, f.DocValues, f.IncludeInAll = analyzerOf(s.Language, asWords), false, false, false
		m.DefaultMapping.AddFieldMappingsAt(fieldName(i), f)
		as := asBeginnings
		if s.Rule != "" {
			as = asAllBeginnings
		}
		b := bleve.NewTextFieldMapping()
		b.Name, b.Analyzer = beginningsName(i), analyzerOf(s.Language, as)
		b.Store, b.DocValues, b.IncludeInAll, b.IncludeTermVectors = false, false, false, false
		m.DefaultMapping.AddFieldMappingsAt(fieldName(i), b)
	}
	if s.Rule != "" {
		t := bleve.NewKeywordFieldMapping()
		t.Store, t.DocValues, t.IncludeInAll, t.IncludeTermVectors, t.SkipFreqNorm = false, false, false, false, true
		m.DefaultMapping.AddFieldMappingsAt(termsField, t)
	}
	return m
}

// termsField is where a document has the terms by which the rule of lists selects it.
const termsField = "rule"

// beginningsName is the name of a field for the beginnings of words: it has words as they are written where a stem
// begins differently, and all beginnings where searches for one are to go through no words of others.
func beginningsName(i int) string { return "b" + strconv.Itoa(i) }

// fieldName is the name of a field in an index: those of objects may have dots, which bleve takes for levels.
func fieldName(i int) string { return "f" + strconv.Itoa(i) }

// Limits of the writes to an index.
const (
	maxBatchBytes = 4 << 20 // of text
	maxWaiting    = 16      // writes that are not on disk
	readAtOnce    = 32      // objects, each of which may have more than a MiB
)

// maxBatch is how many objects are written to an index at once; fewer in a test.
var maxBatch = 500

// batch collects the writes to an index that are made at once.
type batch struct {
	index *textIndex
	batch *bleve.Batch
	bytes int
}

func (x *textIndex) batch() *batch { return &batch{index: x, batch: x.bleve.NewBatch()} }

// set has the index have an object as a record has it.
func (b *batch) set(ctx context.Context, r driver.Record) error {
	document, size := documentOf(b.index.settings.Fields, r.Body)
	if b.index.settings.Rule != "" {
		terms, err := b.index.store.SearchTerms(ctx, r.Body)
		if err != nil {
			return err
		}
		for _, term := range terms {
			size += len(term)
		}
		document[termsField] = terms
	}
	b.bytes += size
	return b.batch.Index(r.UUID, document)
}

// full reports whether the batch is to be written.
func (b *batch) full() bool { return b.batch.Size() >= maxBatch || b.bytes >= maxBatchBytes }

// write writes the batch, and up to where the index has followed the log, if that is given, in one.
func (b *batch) write(ctx context.Context, at *position) error {
	if err := b.index.awaitDisk(ctx, maxWaiting); err != nil {
		return err
	}
	if at != nil {
		data, err := json.Marshal(state{b.index.form, b.index.settings, *at})
		if err != nil {
			return err
		}
		b.batch.SetInternal(stateKey, data)
	}
	b.index.waiting.Add(1)
	b.batch.SetPersistedCallback(func(error) { b.index.waiting.Add(-1) }) // it is called once, when it is on disk
	if err := b.index.bleve.Batch(b.batch); err != nil {
		b.index.waiting.Add(-1)
		return errs.Wrap(err, errs.Unavailable, "the search index %s can't be written", b.index.folder)
	}
	if at != nil {
		b.index.stored = *at
	}
	b.batch, b.bytes = b.index.bleve.NewBatch(), 0
	return nil
}

// errStalled says that the disk of an index takes nothing.
var errStalled = errs.New(errs.Unavailable, "the search index can't be written: is its disk full?")

const (
	diskInterval = 10 * time.Millisecond
	diskTimeout  = 30 * time.Second
)

// awaitDisk waits until fewer writes than some wait for the disk.
func (x *textIndex) awaitDisk(ctx context.Context, some int64) error {
	for began := time.Now(); x.waiting.Load() >= some; {
		if err := backoff.Sleep(ctx, diskInterval); err != nil {
			return err
		}
		if time.Since(began) > diskTimeout {
			return errStalled
		}
	}
	return nil
}

// update has the index have objects as they are now.
func (x *textIndex) update(ctx context.Context, uuids []string, at position) error {
	b := x.batch()
	for len(uuids) > 0 {
		chunk := uuids[:min(readAtOnce, len(uuids))]
		uuids = uuids[len(chunk):]
		records, err := driver.GetMany(ctx, x.store.Driver(), chunk)
		if err != nil {
			return err
		}
		gone := map[string]bool{}
		for _, uuid := range chunk {
			gone[uuid] = true
		}
		for _, r := range records {
			delete(gone, r.UUID)
			if err := b.set(ctx, r); err != nil {
				return err
			}
		}
		for uuid := range gone {
			b.batch.Delete(uuid)
		}
		if b.full() && len(uuids) > 0 {
			if err := b.write(ctx, nil); err != nil {
				return err
			}
		}
	}
	return b.write(ctx, &at)
}

// reader returns the index as it is now, to be closed.
func (x *textIndex) reader() (index.IndexReader, error) {
	in, err := x.bleve.Advanced()
	if err != nil {
		return nil, err
	}
	return in.Reader()
}

// search returns hits in the order of their scores, and of their uuids where these are equal.
func (x *textIndex) search(ctx context.Context, q query.Query, s store.TextSearch) ([]store.TextHit, bool, error) {
	r := bleve.NewSearchRequestOptions(q, s.Limit, 0, false)
	r.SortBy([]string{"-_score", "_id"})
	if s.Backward {
		r.SortBy([]string{"_score", "-_id"})
	}
	if s.After != nil {
		after, err := readPosition(s.After)
		if err != nil {
			return nil, false, err
		}
		r.SetSearchAfter(after)
	}
	found, err := x.bleve.SearchInContext(ctx, r)
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "TooManyClauses"):
		return nil, false, errTooManyBeginnings()
	case ctx.Err() != nil:
		return nil, false, errs.Wrap(ctx.Err(), errs.Unavailable,
			"q: the search took too long; look for words that fewer objects have")
	case err != nil:
		return nil, false, errs.Wrap(err, errs.Unavailable, "the search index %s can't be read", x.folder)
	}
	hits := make([]store.TextHit, 0, len(found.Hits))
	for _, hit := range found.Hits {
		hits = append(hits, store.TextHit{UUID: hit.ID, Position: positionOf(hit.Score, hit.ID)})
	}
	return hits, len(hits) == s.Limit, nil
}

// readPosition returns what bleve begins after.
func readPosition(position []byte) ([]string, error) {
	score, uuid, err := splitPosition(position)
	if err != nil {
		return nil, err
	}
	return []string{strconv.FormatFloat(score, 'g', -1, 64), uuid}, nil
}

const closeTimeout = 2 * time.Second

// close closes the index, with its position.
func (x *textIndex) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if at := x.at.Load(); at != nil && *at != x.stored {
		_ = x.batch().write(ctx, at)
	}
	_ = x.awaitDisk(ctx, 1) // what is not on disk is followed again
	_ = x.bleve.Close()
}
