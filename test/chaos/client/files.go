package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"belfry/test/chaos/history"
)

// file attaches a file to an object, or reads the object and reads or removes one of its files.
func (c *client) file(ctx context.Context, o history.Object) bool {
	if c.rand.IntN(2) == 0 {
		return c.attach(ctx, o)
	}
	read, ok := c.do(ctx, history.Op{Object: o, Kind: history.Get})
	files := history.Files(read.Body, history.Picture)
	if !ok || len(files) == 0 {
		return ok
	}
	n := c.rand.IntN(len(files))
	if c.rand.IntN(2) == 0 {
		return c.readFile(ctx, o, n)
	}
	return c.remove(ctx, o, n, files[n].Hash)
}

func filePath(o history.Object) string {
	return fmt.Sprintf("%s/%s/%s", o.Store, o.UUID, history.Picture)
}

// attach uploads a content that no other upload has.
func (c *client) attach(ctx context.Context, o history.Object) bool {
	content := []byte(strings.Repeat(c.token()+"\n", 1+c.rand.IntN(100)))
	sum := sha256.Sum256(content)
	op := history.Op{Object: o, Kind: history.Attach, File: hex.EncodeToString(sum[:])}
	r, ok := c.fileRequest(ctx, &op, http.MethodPut, "/binary/upload/"+filePath(o)+"/add", content)
	if op.Outcome == history.Done {
		var record history.Record
		if err := json.Unmarshal(r.body, &record); err != nil || record.Hash != op.File ||
			record.Size != int64(len(content)) {
			c.History.Wrong(fmt.Sprintf("%s: the record is %s", op, r.body))
		}
	}
	return ok
}

func (c *client) remove(ctx context.Context, o history.Object, n int, hash string) bool {
	op := history.Op{Object: o, Kind: history.Remove, File: hash}
	_, ok := c.fileRequest(ctx, &op, http.MethodDelete, "/binary/"+filePath(o)+"/"+strconv.Itoa(n)+"/"+hash, nil)
	return ok
}

// fileRequest sends a write of a file and records it.
func (c *client) fileRequest(ctx context.Context, op *history.Op, method, path string, content []byte) (*reply, bool) {
	c.sent++
	op.Client, op.Request = c.number, c.prefix+"-"+strconv.Itoa(c.sent)
	h := http.Header{"X-Request-Id": {op.Request}}
	if content != nil {
		h.Set("Content-Type", "application/octet-stream")
	}
	op.Call = c.History.Now()
	r, err := c.http.send(ctx, method, c.front+path, h, content)
	wrong := conclude(op, r, err)
	op.Return = c.History.Now()
	c.record(*op, wrong)
	return r, op.Outcome != history.Unknown
}

// readFile compares a file with the hash that the reply has.
func (c *client) readFile(ctx context.Context, o history.Object, n int) bool {
	r, err := c.http.send(ctx, http.MethodGet, c.front+"/binary/"+filePath(o)+"/"+strconv.Itoa(n), nil, nil)
	if err != nil || r.status >= 500 {
		return false
	}
	if r.status != http.StatusOK {
		return true // it was removed
	}
	sum := sha256.Sum256(r.body)
	if want := strings.Trim(r.header.Get("ETag"), `"`); hex.EncodeToString(sum[:]) != want {
		c.History.Wrong(fmt.Sprintf("the content of file %d of %s has the hash %x, its tag is %s", n, o, sum, want))
	}
	return true
}
