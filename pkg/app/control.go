package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
)

// differenceTimeout is how long a difference must persist in a running belfry before verify reports it:
// the workers may still apply it.
const differenceTimeout = 15 * time.Second

// startControl serves requests of commands that need the data folder while this process holds it. A
// process that can read the folder's lock file may make them.
func (a *App) startControl(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", a.controlVerify)
	mux.HandleFunc("POST /backup", a.controlBackup)
	mux.HandleFunc("GET /export/{store}", a.controlExport)
	mux.HandleFunc("POST /import/{store}", a.controlImport)
	mux.HandleFunc("POST /access", answering(a.log, 4<<20, func(Question) string { return "access check" }, func(ctx context.Context, q Question) (*Access, error) {
		now := a.now()
		return decide(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /schema", answering(a.log, maxSchemaQuestion, func(SchemaQuestion) string { return "schema check" }, func(ctx context.Context, q SchemaQuestion) (*store.SchemaReport, error) {
		now := a.now()
		return checkSchema(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /users", answering(a.log, maxUserRequest, func(q UserRequest) string { return "user " + string(q.Act) }, a.manageUsers))
	mux.HandleFunc("POST /mail", answering(a.log, 4<<10, func(MailTest) string { return "mail test" }, func(ctx context.Context, q MailTest) (*MailTested, error) {
		now, done := a.use()
		defer done()
		return now.testMail(ctx, q)
	}))
	mux.HandleFunc("POST /seal-keys", answering(a.log, 1<<10, func(KeysRequest) string { return "keys" }, a.manageKeys))
	mux.HandleFunc("POST /doctor", answering(a.log, 1<<10, func(struct{}) string { return "doctor" }, func(ctx context.Context, _ struct{}) (*doctorReply, error) {
		return a.examine(ctx)
	}))
	mux.HandleFunc("POST /reload", answering(a.log, 1<<10, func(struct{}) string { return "reload" }, a.controlReload))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{Handler: guarded(token, mux), ReadHeaderTimeout: 5 * time.Second}
	a.serveBeside("control", server, listener, func(err error) { a.log.Error("the control server has failed", "error", err) })
	return a.lock.publish("http://"+listener.Addr().String(), token)
}

func guarded(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the request needs the token of the data folder's lock file", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// controlVerify replies with lines of JSON, see verifyLine. It ends when the client disconnects.
func (a *App) controlVerify(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	o := VerifyOptions{Repair: query.Get("repair") == "true", Deep: query.Get("deep") == "true"}
	o.Progress = func(p verify.Progress) {
		if lines.Encode(verifyLine{Progress: &p}) == nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	report, now := &Report{}, a.now()
	err := verifyAll(r.Context(), now.set, inOrder(now.binaries), o, verify.Options{RecheckFor: differenceTimeout}, report)
	if err != nil {
		_ = lines.Encode(verifyLine{Error: err.Error()})
		return
	}
	_ = lines.Encode(verifyLine{Report: report})
}

// controlExport writes JSON lines. A failure after the first closes the connection, so that an
// incomplete export is recognized.
func (a *App) controlExport(w http.ResponseWriter, r *http.Request) {
	now := a.now()
	s := now.set.Store(r.PathValue("store"))
	if s == nil {
		http.Error(w, unknownStore(now.config, r.PathValue("store")).Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := writeLines(r.Context(), s, w, r.URL.Query().Get("secrets") == "true"); err != nil {
		a.log.Error("export", "store", s.Name(), "error", err)
		panic(http.ErrAbortHandler)
	}
}
