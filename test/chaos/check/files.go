package check

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"belfry/test/chaos/history"
)

// files checks that every file whose upload was acknowledged is there, unless it was removed or its
// object deleted, that no other is, and that each has the content that its hash says.
func files(s *history.Segment, r *Report) {
	uploads := map[history.Object][]history.Op{}
	for _, op := range slices.Concat(s.Carried, s.Ops) {
		if op.Kind == history.Attach || op.Kind == history.Remove || op.Kind == history.Delete {
			uploads[op.Object] = append(uploads[op.Object], op)
		}
	}
	for _, o := range s.Objects() {
		if o.Store != history.Children {
			continue
		}
		var before []string
		for _, f := range history.Files(s.Start[o].Body, history.Picture) {
			before = append(before, f.Hash)
		}
		there := map[string]bool{}
		for _, f := range history.Files(s.Final[o].Body, history.Picture) {
			if there[f.Hash] {
				r.add(WrongFile, o, "it has the file %s twice", f.Hash)
			}
			there[f.Hash] = true
			explained(r, o, f.Hash, before, uploads[o])
			if s.Files != nil {
				content(s, r, o, f)
			}
		}
		for _, op := range uploads[o] {
			if op.Kind == history.Attach && op.Outcome == history.Done && !there[op.File] && !gone(s, op, uploads[o]) &&
				!unseenDeletion(s, o) {
				r.add(WrongFile, o, "%s: the file %s is not there", op, op.File)
			}
		}
	}
}

// explained checks that a file that is there was uploaded, and not removed.
func explained(r *Report, o history.Object, hash string, before []string, ops []history.Op) {
	uploaded := slices.Contains(before, hash)
	for _, op := range ops {
		if op.File != hash {
			continue
		}
		switch {
		case op.Kind == history.Attach && op.Outcome == history.Refused:
			uploaded = true
			r.add(RefusedEvent, o, "%s, but the file is there", op)
		case op.Kind == history.Attach:
			uploaded = true
		case op.Kind == history.Remove && op.Outcome == history.Done:
			r.add(WrongFile, o, "%s, but the file is there", op)
		}
	}
	if !uploaded {
		r.add(WrongFile, o, "nobody uploaded the file %s", hash)
	}
}

func content(s *history.Segment, r *Report, o history.Object, f history.Record) {
	data, ok := s.Files[f.Hash]
	if !ok {
		r.add(WrongFile, o, "the content of %s can't be read", f.Hash)
		return
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.Hash || int64(len(data)) != f.Size {
		r.add(WrongFile, o, "the content of %s has %d bytes and the hash %x, want %d bytes", f.Hash, len(data), sum,
			f.Size)
	}
}

// gone reports whether a file may have been removed, or its object deleted, after its upload was sent.
func gone(s *history.Segment, upload history.Op, ops []history.Op) bool {
	for _, op := range ops {
		removes := op.Kind == history.Delete || op.Kind == history.Remove && op.File == upload.File
		if removes && op.Outcome != history.Refused && op.Return > upload.Call {
			return true
		}
	}
	for _, e := range s.Published() {
		if e.Deleted() && e.Object() == upload.Object && !byClient(e) &&
			slices.ContainsFunc(history.Files(e.Envelope.Object, history.Picture), func(f history.Record) bool {
				return f.Hash == upload.File
			}) {
			return true
		}
	}
	return false
}
