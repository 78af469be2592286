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

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
)

// controlBackup makes a backup, which ends when the client disconnects.
func (a *App) controlBackup(w http.ResponseWriter, r *http.Request) {
	var q command.BackupRequest
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&q)
	var result *command.BackupResult
	if err == nil {
		var last time.Time
		result, err = a.backups().Make(r.Context(), command.BackupOptions{To: q.To, Progress: func(p backup.Progress) {
			if now := time.Now(); now.Sub(last) >= command.ProgressInterval {
				last = now
				_ = lines.Encode(command.BackupLine{Progress: &p})
				_ = http.NewResponseController(w).Flush()
			}
		}})
	}
	if err != nil {
		if r.Context().Err() == nil {
			a.log.Error("a backup that a command requested has failed", "error", err)
		}
		failed := hold.FailureOf(a.log, "backup", err)
		_ = lines.Encode(command.BackupLine{Failure: &failed})
		return
	}
	_ = lines.Encode(command.BackupLine{Result: result})
}

// backups are those of the serving process. Each has a lease of its own.
func (a *App) backups() *command.Maker {
	now := a.now()
	return &command.Maker{Plan: now.plan, Set: now.set, Bus: a.bus, Storages: a.now().storages, Backends: a.now().backends, Log: a.log, Holder: command.NewHolder(now.config, a.run)}
}

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
	mux.HandleFunc("POST /access", hold.Answering(a.log, 4<<20, func(command.Question) string { return "access check" }, func(ctx context.Context, q command.Question) (*command.Access, error) {
		now := a.now()
		return command.Decide(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /schema", hold.Answering(a.log, command.MaxSchemaQuestion, func(command.SchemaQuestion) string { return "schema check" }, func(ctx context.Context, q command.SchemaQuestion) (*store.SchemaReport, error) {
		now := a.now()
		return command.CheckSchemaIn(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /users", hold.Answering(a.log, command.MaxUserRequest, func(q command.UserRequest) string { return "user " + string(q.Act) }, a.manageUsers))
	mux.HandleFunc("POST /mail", hold.Answering(a.log, 4<<10, func(command.MailTest) string { return "mail test" }, func(ctx context.Context, q command.MailTest) (*command.MailTested, error) {
		now, done := a.use()
		defer done()
		return now.testMail(ctx, q)
	}))
	mux.HandleFunc("POST /seal-keys", hold.Answering(a.log, 1<<10, func(command.KeysRequest) string { return "keys" }, a.manageKeys))
	mux.HandleFunc("POST /doctor", hold.Answering(a.log, 1<<10, func(struct{}) string { return "doctor" }, func(ctx context.Context, _ struct{}) (*examine.DoctorReply, error) {
		return a.examine(ctx)
	}))
	mux.HandleFunc("POST /reload", hold.Answering(a.log, 1<<10, func(struct{}) string { return "reload" }, a.controlReload))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{Handler: guarded(token, mux), ReadHeaderTimeout: 5 * time.Second}
	port := serveBeside(server, listener, func(err error) { a.log.Error("the control server has failed", "error", err) })
	a.onStop("control", func(context.Context) error { return port.close() })
	return a.lock.Publish("http://"+listener.Addr().String(), token)
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
	o := command.VerifyOptions{Repair: query.Get("repair") == "true", Deep: query.Get("deep") == "true"}
	o.Progress = func(p verify.Progress) {
		if lines.Encode(command.VerifyLine{Progress: &p}) == nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	report, now := &command.Report{}, a.now()
	err := command.VerifyAll(r.Context(), now.set, open.InOrder(now.binaries), o, verify.Options{RecheckFor: command.DifferenceTimeout}, report)
	if err != nil {
		_ = lines.Encode(command.VerifyLine{Error: err.Error()})
		return
	}
	_ = lines.Encode(command.VerifyLine{Report: report})
}

// controlExport writes JSON lines. A failure after the first closes the connection, so that an
// incomplete export is recognized.
func (a *App) controlExport(w http.ResponseWriter, r *http.Request) {
	now := a.now()
	s := now.set.Store(r.PathValue("store"))
	if s == nil {
		http.Error(w, plan.UnknownStore(now.config, r.PathValue("store")).Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := command.WriteLines(r.Context(), s, w, r.URL.Query().Get("secrets") == "true"); err != nil {
		a.log.Error("export", "store", s.Name(), "error", err)
		panic(http.ErrAbortHandler)
	}
}

// manageKeys is manageKeys of the serving process.
func (a *App) manageKeys(ctx context.Context, q command.KeysRequest) (*[]command.SealKey, error) {
	keys, err := command.ManageKeysIn(ctx, a.now().set.Store(config.SealKeyStore), q)
	if err == nil && q.Rotate {
		a.log.Info("a key for sealing was added", "keys", len(keys))
	}
	return &keys, err
}

// controlImport is ImportSecrets of the serving process.
func (a *App) controlImport(w http.ResponseWriter, r *http.Request) {
	now := a.now()
	var reply hold.Answer[command.Imported]
	result, err := command.ImportSecretsInto(r.Context(), now.plan, now.set, r.PathValue("store"), r.URL.Query().Get("update") == "true", r.Body)
	if err != nil {
		reply.Failure = hold.FailureOf(a.log, "import", err)
	} else {
		reply.Answer = result
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}

func (a *App) manageUsers(ctx context.Context, q command.UserRequest) (*command.UserReply, error) {
	now, done := a.use()
	defer done()
	if now.auth != nil {
		return command.ManageUsersIn(ctx, now.auth, q)
	}
	// A process without the roles that log in and send mails.
	o := now.plan.AuthOptions(now.set)
	o.Passwords.Registry, o.Passwords.Log = a.registry, a.log
	users := account.New(o)
	defer users.Close()
	return command.ManageUsersIn(ctx, users, q)
}
