package search

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/walk"
)

// buildKey is the key of the progress of a build. Each batch writes it with its documents, so after a crash the place
// is never beyond the documents that are left. A complete index lacks it.
var buildKey = []byte("belfry-build")

// unfinished is how far a build is.
type unfinished struct {
	Form     int      `json:"form"`
	Settings Settings `json:"settings"`
	position          // in the log, when the build began: the index follows the log from there once it is complete

	Walk walk.Progress `json:"walk"`
}

// place has the next write of a batch say how far the build is.
func (b *batch) place(at position, p walk.Progress) error {
	data, err := json.Marshal(unfinished{b.index.form, b.index.settings, at, p})
	if err == nil {
		b.batch.SetInternal(buildKey, data)
	}
	return err
}

// openUnfinished opens an index whose build has ended early, if it is of this form and these settings.
func openUnfinished(folder string, s Settings) (*textIndex, unfinished, bool) {
	var of unfinished
	b, ok := openBleve(folder)
	if !ok {
		return nil, of, false
	}
	data, err := b.GetInternal(buildKey)
	x := &textIndex{bleve: b, folder: folder, form: form, settings: s}
	if err != nil || json.Unmarshal(data, &of) != nil || of.Form != form || !x.is(of.Settings) {
		_ = b.Close() // nothing was written
		return nil, of, false
	}
	return x, of, true
}

// isUnfinished reports whether a folder has an index whose build can be continued, as far as the log allows it.
func isUnfinished(folder string, s Settings) bool {
	x, _, ok := openUnfinished(folder, s)
	if ok {
		_ = x.bleve.Close() // nothing was written
	}
	return ok
}

// continued opens the index of a build that ended early, if the log still has the events since its beginning. Else it
// removes it.
func (x *storeIndex) continued(ctx context.Context, conn *nats.Conn, folder string,
	log eventlog.State) (built *textIndex, of unfinished, err error) {
	if folder == "" {
		return nil, of, nil
	}
	built, of, ok := openUnfinished(folder, x.of.Load().Settings)
	if ok {
		if ok = of.in(log); ok {
			ok, err = eventlog.Has(ctx, conn, of.Sequence, of.Mark)
		}
		if !ok || err != nil {
			_ = built.bleve.Close() // nothing was written
		}
	}
	if err == nil && !ok {
		x.removeFolder(folder)
	}
	if err != nil || !ok {
		return nil, unfinished{}, err
	}
	return built, of, nil
}

// endOf returns the end of the log, from which a build that begins follows the log.
func endOf(ctx context.Context, conn *nats.Conn, log eventlog.State) (position, error) {
	at := position{Log: log.Created, Sequence: log.Last}
	if log.Last < log.First { // it is empty
		return at, nil
	}
	page, _, err := eventlog.Page(ctx, conn, log.Last, eventlog.Limit{Events: 1, Bytes: 1})
	if len(page) > 0 && page[0].Sequence == log.Last {
		at.Mark = page[0].Mark()
	}
	return at, err
}

// forget removes an index whose build ended early, and that is no longer needed.
func (x *storeIndex) forget() {
	if x.unfinished != "" {
		x.removeFolder(x.unfinished)
		x.unfinished = ""
	}
}

// next returns the folder of the next index.
func (x *storeIndex) next() string {
	next := 1
	if all := x.numbers(); len(all) > 0 {
		next = slices.Max(all) + 1
	}
	return x.numbered(next)
}

// leave closes an index whose build has ended early. It keeps it for the next build, unless that might fail for the
// same reason.
func (x *storeIndex) leave(built *textIndex, keep bool) (kept bool) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if keep {
		_ = built.awaitDisk(ctx, 1) // what is not on disk is read again
	}
	err := caught(built.bleve.Close)
	if keep && err == nil {
		return true
	}
	if err := os.RemoveAll(built.folder); err != nil {
		x.log.Warn("an unfinished search index can't be removed", "error", err)
	}
	return false
}
