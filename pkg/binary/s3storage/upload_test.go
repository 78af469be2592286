package s3storage_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

// The server is killed during an upload, which continues after the restart.
func TestStageSurvivesRestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	s := open(t, fastRetry(options(server)))
	s.SetSegmentParts(2)
	c := random("a", 5*s3storage.PartSize+100)
	g := stage(t, s, c[:3*s3storage.PartSize+100])
	must(t, s3storage.AwaitParts(t.Context(), g))
	rest := bytes.NewReader(c[3*s3storage.PartSize+100:])

	server.Kill()
	piece := make([]byte, s3storage.PartSize)
	_, err := io.ReadFull(rest, piece)
	must(t, err)
	taken, err := g.Write(piece)
	if err == nil {
		err = s3storage.AwaitParts(t.Context(), g)
	}
	wantKind(t, err, errs.Unavailable)
	lost := open(t, fastRetry(options(server)))
	wantKind(t, put(t.Context(), lost, random("b", s3storage.PartSize+100)), errs.Unavailable)

	server.Restart(t)
	lacks(t, s, hashOf(c))
	_, err = g.Write(piece[taken:])
	must(t, err)
	_, err = io.Copy(g, rest)
	must(t, err)

	server.Kill()
	wantKind(t, g.Commit(t.Context(), hashOf(c)), errs.Unavailable)
	server.Restart(t)
	must(t, g.Commit(t.Context(), hashOf(c)))
	holds(t, s, c)
	g.Discard()
	tidies(t, lost, 0)
	holds(t, s, c)
}

func TestStageDiscardedWithoutServerIsRemovedLater(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	s := open(t, fastRetry(options(server)))
	s.SetSegmentParts(1)
	g, err := s.Stage(t.Context())
	must(t, err)
	_, err = g.Write(random("a", 3*s3storage.PartSize))
	must(t, err)
	tidies(t, s, 0)
	server.Kill()
	g.Discard()
	server.Restart(t)
	tidies(t, s, 1)
	tidies(t, s, 0)
}

// The response to CompleteMultipartUpload is lost. The repeated request returns
// NoSuchUpload, since the upload is complete.
func TestLostResponseToCompletionIsNoError(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	s.SetSegmentParts(1)
	var completed sync.Map
	p.set(func(w http.ResponseWriter, r *http.Request) {
		if operation(r) != "CompleteMultipartUpload" {
			p.pass.ServeHTTP(w, r)
			return
		}
		if _, again := completed.LoadOrStore(r.URL.Query().Get("uploadId"), true); again {
			refuse(w, r, http.StatusNotFound, "NoSuchUpload")
			return
		}
		p.pass.ServeHTTP(httptest.NewRecorder(), r)
		abort()
	})
	c := random("a", 2*s3storage.PartSize)
	must(t, put(t.Context(), s, c))
	holds(t, s, c)
}

// A stage that another process has removed can't be committed: neither before its
// segment is completed, nor during that, nor after it.
func TestRemovedStageCanNotBeCommitted(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s, other := open(t, fastRetry(p.options(server))), open(t, options(server))
	c := random("a", 2*s3storage.PartSize)

	g := stage(t, s, c)
	must(t, s3storage.AwaitParts(t.Context(), g))
	tidies(t, other, 1)
	wantKind(t, g.Commit(t.Context(), hashOf(c)), errs.Unavailable)
	lacks(t, s, hashOf(c))

	p.set(func(w http.ResponseWriter, r *http.Request) {
		if operation(r) == "CompleteMultipartUpload" {
			refuse(w, r, http.StatusNotFound, "NoSuchUpload")
			return
		}
		p.pass.ServeHTTP(w, r)
	})
	wantKind(t, put(t.Context(), s, c), errs.Unavailable)
	lacks(t, s, hashOf(c))
	p.set(nil)

	g = stage(t, s, c)
	must(t, g.Commit(t.Context(), hashOf(c)))
	must(t, s.Delete(t.Context(), hashOf(c)))
	tidies(t, other, 1)
	wantKind(t, g.Commit(t.Context(), hashOf(c)), errs.Unavailable)
	lacks(t, s, hashOf(c))

	must(t, put(t.Context(), s, c))
	holds(t, s, c)
}

// A failed copy leaves no content, and no parts that cost money. S3 may keep a
// part that it copies while the upload is aborted, so the storage waits for the
// copies in flight first.
func TestFailedCopyLeavesNothing(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, fastRetry(p.options(server)))
	s.SetSegmentParts(1)
	// The first part of the first content is copied alone.
	must(t, put(t.Context(), s, random("b", 2*s3storage.PartSize)))
	c := random("a", 3*s3storage.PartSize)
	g := stage(t, s, c)
	var failures atomic.Int64
	failed := make(chan struct{})
	p.set(func(w http.ResponseWriter, r *http.Request) {
		if operation(r) == "UploadPartCopy" {
			if r.URL.Query().Get("partNumber") == "2" {
				w.WriteHeader(http.StatusInternalServerError)
				if failures.Add(1) == s3storage.Attempts {
					close(failed)
				}
				return
			}
			<-failed
			select {
			case <-r.Context().Done():
				t.Error("a copy in flight was canceled")
			case <-time.After(100 * time.Millisecond): // for as long as a cancellation may take
			}
		}
		p.pass.ServeHTTP(w, r)
	})
	wantKind(t, g.Commit(t.Context(), hashOf(c)), errs.Unavailable)
	lacks(t, s, hashOf(c))
	p.set(nil)
	g.Discard()
	tidies(t, open(t, options(server)), 0)
}

func TestCopyInProgressIsNotRemoved(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	p := front(t, server, true)
	s := open(t, p.options(server))
	s.SetSegmentParts(1)
	c := random("a", 3*s3storage.PartSize)
	g := stage(t, s, c)
	copying := make(chan struct{}, 10)
	proceed := make(chan struct{})
	p.set(func(w http.ResponseWriter, r *http.Request) {
		if operation(r) == "UploadPartCopy" {
			copying <- struct{}{}
			<-proceed
		}
		p.pass.ServeHTTP(w, r)
	})
	committed := make(chan error, 1)
	go func() { committed <- g.Commit(t.Context(), hashOf(c)) }()
	<-copying
	n, err := s.RemoveAbandoned(t.Context(), time.Now().Add(time.Hour))
	close(proceed)
	if n != 0 || err != nil {
		t.Errorf("%d stages were removed, error %v", n, err)
	}
	must(t, <-committed)
	holds(t, s, c)
}
