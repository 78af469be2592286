package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"belfry/pkg/errs"
)

// patience is how long a difference may last in a belfry that serves before
// it counts: the workers may be behind.
const patience = 15 * time.Second

// startControl takes requests of commands that need the data folder while this
// process has it. Who can read the folder's lock file may make them.
func (a *App) startControl(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", a.controlVerify)
	mux.HandleFunc("GET /export/{store}", a.controlExport)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{Handler: guarded(token, mux), ReadHeaderTimeout: 5 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("control requests are no longer taken", "error", err)
		}
	}()
	a.onStop("control", func(context.Context) error {
		err := server.Close()
		<-done
		return err
	})
	return a.lock.tell("http://"+listener.Addr().String(), token)
}

func guarded(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token of the data folder's lock file is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a *App) controlVerify(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	o := VerifyOptions{Repair: query.Get("repair") == "true", Deep: query.Get("deep") == "true"}
	report := &Report{}
	if err := verifyAll(r.Context(), a.set, inOrder(a.binaries), o, patience, report); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report)
}

// controlExport writes JSON lines. A failure in their midst breaks the
// connection, so that half an export is not taken for a whole one.
func (a *App) controlExport(w http.ResponseWriter, r *http.Request) {
	s := a.set.Store(r.PathValue("store"))
	if s == nil {
		http.Error(w, unknownStore(a.config, r.PathValue("store")).Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := writeLines(r.Context(), s, w); err != nil {
		a.log.Error("export", "store", s.Name(), "error", err)
		panic(http.ErrAbortHandler)
	}
}
