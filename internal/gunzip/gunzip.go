// Package gunzip reads compressed data that a program embeds.
package gunzip

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
)

// Bytes returns the content of a gzip file of at most 4 GiB that the program has made or embeds. It panics for a
// damaged one.
func Bytes(packed []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic("gunzip: " + err.Error())
	}
	content := make([]byte, binary.LittleEndian.Uint32(packed[len(packed)-4:])) // gzip ends with the size
	if _, err := io.ReadFull(r, content); err != nil {
		panic("gunzip: " + err.Error())
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) { // the checksum is read with the end
		panic("gunzip: the file goes beyond its size, or is damaged")
	}
	return content
}
