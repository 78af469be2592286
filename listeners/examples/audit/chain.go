package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// line is a line of the log. Its hash covers the previous hash and the rest of
// the line.
type line struct {
	Hash     string `json:"hash"`
	Sequence uint64 `json:"sequence"` // in belfry's log
	Event    struct {
		ID string `json:"id"`
	} `json:"event"`
}

const (
	begin   = `{"hash":"`
	hashLen = 2 * sha256.Size
	rest    = len(begin) + hashLen
	maxLine = 1 << 20 // an event has at most 256 KiB
)

// appendLine appends the line of an event to dst, and returns the new head.
func appendLine(dst []byte, head string, sequence uint64, envelope []byte) (out []byte, newHead string, err error) {
	var tail bytes.Buffer
	fmt.Fprintf(&tail, `","sequence":%d,"event":`, sequence)
	if err := json.Compact(&tail, envelope); err != nil {
		return dst, head, fmt.Errorf("the event is not JSON: %w", err)
	}
	tail.WriteByte('}')
	head = hash(head, tail.Bytes())
	dst = append(append(dst, begin...), head...)
	return append(append(dst, tail.Bytes()...), '\n'), head, nil
}

func hash(head string, tail []byte) string {
	h := sha256.New()
	_, _ = h.Write([]byte(head))
	_, _ = h.Write(tail)
	return hex.EncodeToString(h.Sum(nil))
}

// scanned is the result of a scan.
type scanned struct {
	lines int
	size  int64  // of the complete lines
	half  int    // bytes after them: an incomplete line that a crash left
	head  string // the last hash
}

// scan reads a log from its beginning and calls each with every line. It returns
// an error for the first line that differs from the original.
func scan(r io.Reader, each func(line)) (scanned, error) {
	var s scanned
	for in := bufio.NewReaderSize(r, maxLine); ; {
		text, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			s.half = len(text)
			return s, nil
		case errors.Is(err, bufio.ErrBufferFull):
			return s, fmt.Errorf("line %d is longer than any that was written", s.lines+1)
		case err != nil:
			return s, err
		}
		var l line
		whole := bytes.TrimSuffix(text, []byte("\n"))
		if len(whole) < rest || !bytes.HasPrefix(whole, []byte(begin)) || json.Unmarshal(whole, &l) != nil {
			return s, fmt.Errorf("line %d is not a line of the log", s.lines+1)
		}
		if l.Hash != hash(s.head, whole[rest:]) {
			return s, fmt.Errorf("line %d does not match the line before it: one of them was changed, or lines "+
				"between them are missing", s.lines+1)
		}
		s.lines, s.size, s.head = s.lines+1, s.size+int64(len(text)), l.Hash
		each(l)
	}
}
