package files_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/pkg/api/files"
	"belfry/pkg/binary"
	"belfry/test/kit"
)

// uploading is the beginning of a request that appends to texts.
const uploading = "PUT /files/upload/Books/emma/texts/add HTTP/1.1\r\nHost: x\r\n"

// An upload that ends early stores nothing, wherever it ends.
func TestUploadEndsEarly(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	form := "Content-Type: multipart/form-data; boundary=b\r\n"
	part := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n"
	for name, request := range map[string]string{
		"no byte":           uploading + "Content-Length: 100\r\n\r\n",
		"some bytes":        uploading + "Content-Length: 100\r\n\r\nhello",
		"no chunk":          uploading + "Transfer-Encoding: chunked\r\n\r\n",
		"some chunks":       uploading + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"within a chunk":    uploading + "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"no last chunk":     uploading + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
		"malformed chunk":   uploading + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
		"within a form":     uploading + form + "Content-Length: 1000\r\n\r\n" + part + "hello",
		"after the file":    uploading + form + "Content-Length: 1000\r\n\r\n" + part + "hello\r\n--b--\r\n",
		"before the file":   uploading + form + "Content-Length: 1000\r\n\r\n--b\r\nContent-Dis",
		"a form, in chunks": uploading + form + "Transfer-Encoding: chunked\r\n\r\n5\r\n--b\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l.T = t
			l.Raw(request, true).Want(400)
			l.empty()
			if got := l.records("texts"); len(got) > 0 {
				t.Errorf("%v", got)
			}
		})
	}
}

// A client that disconnects during an upload leaves nothing in the storage, and
// other clients are not affected.
func TestClientDisconnectsDuringUpload(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	for range 10 {
		conn := l.Dial()
		_, err := io.WriteString(conn, uploading+"Content-Length: 1000000\r\n\r\n"+strings.Repeat("x", 5000))
		l.Must(err)
		kit.WaitFor(l, "the upload has begun", func() bool { return l.stages() > 0 })
		l.Must(conn.SetLinger(0))
		l.Must(conn.Close())
		l.empty()
	}
	if got := l.records("texts"); len(got) > 0 {
		t.Errorf("%v", got)
	}
	l.add("texts", "another upload")
}

// An upload may take longer than other requests, and is answered.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	l := startLibrary(t, func(h *http.Server) {
		h.ReadTimeout, h.WriteTimeout = limit, limit
		h.ReadHeaderTimeout, h.IdleTimeout = kit.Limit, kit.Limit // a busy machine may exceed them
	})
	metadata := strings.Repeat("x", 7000) // the reply is longer than what net/http keeps back
	body := "--b\r\nContent-Disposition: form-data; name=\"m\"\r\n\r\n" + metadata +
		"\r\n--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\nhello\r\n--b--\r\n"
	conn := l.Dial()
	_, err := fmt.Fprintf(conn, "%sContent-Type: multipart/form-data; boundary=b\r\nContent-Length: %d\r\n\r\n",
		uploading, len(body))
	l.Must(err)
	_, err = io.WriteString(conn, body[:len(body)-1])
	l.Must(err)
	began := time.Now()
	kit.WaitFor(l, "the timeouts of other requests have expired", func() bool { return time.Since(began) > 3*limit })
	_, err = io.WriteString(conn, body[len(body)-1:])
	l.Must(err)
	if rec := recordOf(l.Receive(conn).Want(201)); rec.Metadata["m"] != metadata {
		t.Errorf("%v", rec)
	}
}

func TestStalledUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(_ *binary.Options, b *files.Options) { b.Patience = 100 * time.Millisecond })
	r := l.Raw(uploading+"Content-Length: 1000000\r\n\r\nhello", false).Want(408)
	if !r.Close || r.Problem().Type != "urn:belfry:problem:timeout" {
		t.Errorf("closed: %v, %s", r.Close, r.Text)
	}
	l.empty()
}

// An upload that is too large is refused by its Content-Length, without being
// read, or as soon as it exceeds the limit.
func TestUploadTooLarge(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.add("texts", strings.Repeat("x", maxFile)) // as large as can be
	count := len(l.records("texts"))
	large := fmt.Sprintf("Content-Length: %d\r\n", maxFile+1)
	l.Raw(uploading+large+"\r\n", false).Want(413).Says("1048576")
	l.Raw(uploading+large+"Expect: 100-continue\r\n\r\n", false).Want(413)

	chunk := "100000\r\n" + strings.Repeat("x", 1<<20) + "\r\n"
	r := l.Raw(uploading+"Transfer-Encoding: chunked\r\n\r\n"+chunk+"1\r\nx\r\n", false).Want(413)
	if !r.Close {
		t.Error("the connection stays open before a body that is not read")
	}
	form := "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n" + strings.Repeat("x", maxFile+1)
	l.put("Books/emma/texts/add", form, "Content-Type", "multipart/form-data; boundary=b").Want(413)
	if after := len(l.records("texts")); after != count {
		t.Errorf("%d records, not %d", after, count)
	}
	kit.WaitFor(l, "no stage is left", func() bool { return l.stages() == 0 })
}

// A client that sends Expect: 100-continue is refused before it sends the body.
func TestUploadExpectsContinue(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	const form = "\r\nContent-Type: multipart/form-data; boundary=b"
	for path, status := range map[string]int{
		"Guarded/emma/texts/add": 401, "Books/none/texts/add": 404, "Books/emma/uuid/add": 404,
		"Books/emma/texts/5": 409,
		"Books/emma/texts/x": 400, "Guarded/emma/forms/add": 401, "Books/none/forms/add": 404,
		"Books/emma/texts/add": 201,
	} {
		conn := l.Dial()
		head := "PUT /files/upload/" + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue"
		if strings.Contains(path, "forms") {
			head += form
		}
		_, err := io.WriteString(conn, head+"\r\n\r\n")
		l.Must(err)
		in := bufio.NewReader(conn)
		request := &http.Request{Method: "PUT"}
		resp, err := http.ReadResponse(in, request)
		l.Must(err)
		if status != 201 {
			if resp.StatusCode != status {
				t.Errorf("%s: %d, want %d", path, resp.StatusCode, status)
			}
			continue
		}
		if resp.StatusCode != 100 {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
		_, err = io.WriteString(conn, "hello")
		l.Must(err)
		resp, err = http.ReadResponse(in, request)
		l.Must(err)
		resp.Request = request
		l.Read(resp).Want(201)
	}
}

// A client that sends a large body before it reads receives the refusal.
func TestRefusedUploadIsAnswered(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *binary.Options, _ *files.Options) { o.MaxSize = 0 })
	body := bytes.Repeat([]byte("x"), 32<<20)
	for range 5 {
		for _, chunked := range []bool{false, true} {
			var reader io.Reader = bytes.NewReader(body)
			if chunked {
				reader = struct{ io.Reader }{reader}
			}
			r, err := http.NewRequestWithContext(t.Context(), "PUT", l.URL+"/files/upload/Guarded/emma/texts/add",
				reader)
			l.Must(err)
			resp, err := l.Client().Do(r)
			l.Must(err)
			l.Read(resp).Want(401)
		}
	}
	// A small body does not close the connection.
	for range 2 {
		resp := l.Raw("PUT /files/upload/Guarded/emma/texts/add HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
			false).Want(401)
		if resp.Close {
			t.Error("the connection is closed")
		}
	}
}

// Concurrent uploads that append to a property all succeed, each with an index of
// its own.
func TestConcurrentUploads(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	const uploads = 16
	paths := make([]string, uploads)
	var wg sync.WaitGroup
	for i := range uploads {
		wg.Go(func() {
			r := l.put("Books/emma/texts/add", fmt.Sprint("upload ", i))
			if r.StatusCode != 201 {
				t.Errorf("%d: %s", r.StatusCode, r.Text)
			}
			paths[i] = r.Header.Get("Location")
		})
	}
	wg.Wait()
	used := map[string]bool{}
	for i, path := range paths {
		if used[path] {
			t.Errorf("%s is given twice", path)
		}
		used[path] = true
		if r := l.Do("GET", path, "").Want(200); r.Text != fmt.Sprint("upload ", i) {
			t.Errorf("%s: %q", path, r.Text)
		}
	}
	if n := len(l.records("texts")); n != uploads {
		t.Errorf("%d records", n)
	}
}

// Deleting a binary that has been replaced meanwhile deletes nothing, and every
// acknowledged deletion has deleted the binary that it named.
func TestReplaceAndDeleteRace(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.add("texts", "version 0")
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored, deleted := map[string]int{hashOf("version 0"): 1}, map[string]int{}
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				text := fmt.Sprintf("version %d of %d", i, w)
				if r := l.put("Books/emma/texts/0", text); r.StatusCode != 200 && r.StatusCode != 201 {
					t.Errorf("%d: %s", r.StatusCode, r.Text)
				}
				mu.Lock()
				stored[hashOf(text)]++
				mu.Unlock()
			}
		})
		wg.Go(func() {
			for range 25 {
				r := l.Do("GET", "/files/Books/emma/texts/0", "")
				if r.StatusCode == 404 {
					continue
				}
				hash := hashOf(r.Text)
				switch r := l.Do("DELETE", "/files/Books/emma/texts/0/"+hash, ""); r.StatusCode {
				case 204:
					mu.Lock()
					deleted[hash]++
					mu.Unlock()
				case 404, 412:
				default:
					t.Errorf("%d: %s", r.StatusCode, r.Text)
				}
			}
		})
	}
	wg.Wait()
	for hash, n := range deleted {
		if n > stored[hash] {
			t.Errorf("%s was stored %d times and deleted %d times", hash, stored[hash], n)
		}
	}
	for _, rec := range l.records("texts") {
		if deleted[rec.Hash] > 0 {
			t.Errorf("%s is there after its deletion", rec.Hash)
		}
		if _, found, err := l.storage.Stat(t.Context(), rec.Hash); !found || err != nil {
			t.Errorf("%s has no content, %v", rec.Hash, err)
		}
	}
}

// Concurrent transfers of several kinds don't mix up their contents.
func TestConcurrentTransfers(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	large := make([]byte, maxFile)
	for i := range large {
		large[i] = byte(rand.IntN(256))
	}
	path, _ := l.add("texts", string(large))
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			from := i * 1000
			switch i % 3 {
			case 0:
				r := l.put("Books/emma/more/add", string(large[from:]))
				if r.StatusCode != 201 || recordOf(r).Hash != hashOf(string(large[from:])) {
					t.Errorf("%d: %s", r.StatusCode, r.Text)
				}
			case 1:
				if r := l.Do("GET", path, ""); r.Text != string(large) {
					t.Errorf("%d: %d bytes", r.StatusCode, len(r.Text))
				}
			default:
				if r := l.Do("GET", path, "", "Range", fmt.Sprintf("bytes=%d-", from)); r.Text != string(large[from:]) {
					t.Errorf("%d: %d bytes", r.StatusCode, len(r.Text))
				}
			}
		})
	}
	wg.Wait()
}
