package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// control serves requests of commands that need the data folder while this process holds it. A
// process that can read the folder's lock file may make them.
type control struct {
	served  *current
	log     *slog.Logger
	metrics prometheus.Registerer
	folder  *dataFolder
	backups *backupSchedule
	mailers *mailers
	self    *self
	reload  func(ctx context.Context) (*command.Reloaded, error)

	port *port
}

// part is the part of a process.
func (c *control) part() servedPart {
	return servedPart{Name: "control", Start: c.start, Stop: func(context.Context) error { return c.port.close() }}
}

func (c *control) start(ctx context.Context, _ *generation) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	server := &http.Server{Handler: guarded(token, c.mux()), ReadHeaderTimeout: 5 * time.Second}
	c.port = servePort(server, listener, func(err error) { c.log.Error("the control server has failed", "error", err) })
	return c.folder.publish("http://"+listener.Addr().String(), token)
}

func (c *control) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", c.verify)
	mux.HandleFunc("POST /backup", c.backup)
	mux.HandleFunc("GET /export/{store}", c.export)
	mux.HandleFunc("POST /import/{store}", c.importSecrets)
	mux.HandleFunc("POST /access", hold.Answering(c.log, 4<<20, func(command.Question) string { return "access check" }, func(ctx context.Context, q command.Question) (*command.Access, error) {
		now := c.served.now()
		return command.Decide(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /schema", hold.Answering(c.log, command.MaxSchemaQuestion, func(command.SchemaQuestion) string { return "schema check" }, func(ctx context.Context, q command.SchemaQuestion) (*store.SchemaReport, error) {
		now := c.served.now()
		return command.CheckSchemaIn(ctx, now.config, now.set, q)
	}))
	mux.HandleFunc("POST /users", hold.Answering(c.log, command.MaxUserRequest, func(q command.UserRequest) string { return "user " + string(q.Act) }, c.manageUsers))
	mux.HandleFunc("POST /mail", hold.Answering(c.log, 4<<10, func(command.MailTest) string { return "mail test" }, func(ctx context.Context, q command.MailTest) (*command.MailTested, error) {
		now, done := c.served.use()
		defer done()
		return c.mailers.test(ctx, now, q)
	}))
	mux.HandleFunc("POST /seal-keys", hold.Answering(c.log, 1<<10, func(command.KeysRequest) string { return "keys" }, c.manageKeys))
	mux.HandleFunc("POST /doctor", hold.Answering(c.log, 1<<10, func(struct{}) string { return "doctor" }, func(ctx context.Context, _ struct{}) (*examine.DoctorReply, error) {
		return c.self.examine(ctx)
	}))
	mux.HandleFunc("POST /reload", hold.Answering(c.log, 1<<10, func(struct{}) string { return "reload" }, func(ctx context.Context, _ struct{}) (*command.Reloaded, error) { return c.reload(ctx) }))
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	return mux
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

// backup makes a backup, which ends when the client disconnects.
func (c *control) backup(w http.ResponseWriter, r *http.Request) {
	var q command.BackupRequest
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&q)
	var result *command.BackupResult
	if err == nil {
		var last time.Time
		result, err = c.backups.maker().Make(r.Context(), command.BackupOptions{To: q.To, Progress: func(p backup.Progress) {
			if now := time.Now(); now.Sub(last) >= command.ProgressInterval {
				last = now
				_ = lines.Encode(command.BackupLine{Progress: &p})
				_ = http.NewResponseController(w).Flush()
			}
		}})
	}
	if err != nil {
		if r.Context().Err() == nil {
			c.log.Error("a backup that a command requested has failed", "error", err)
		}
		failed := hold.FailureOf(c.log, "backup", err)
		_ = lines.Encode(command.BackupLine{Failure: &failed})
		return
	}
	_ = lines.Encode(command.BackupLine{Result: result})
}

// verify replies with lines of JSON, see verifyLine. It ends when the client disconnects.
func (c *control) verify(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	o := command.VerifyOptions{Repair: query.Get("repair") == "true", Deep: query.Get("deep") == "true"}
	o.Progress = func(p verify.Progress) {
		if lines.Encode(command.VerifyLine{Progress: &p}) == nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	report, now := &command.Report{}, c.served.now()
	err := command.VerifyAll(r.Context(), now.set, open.InOrder(now.binaries), o, verify.Options{RecheckFor: command.DifferenceTimeout}, report)
	if err != nil {
		_ = lines.Encode(command.VerifyLine{Error: err.Error()})
		return
	}
	_ = lines.Encode(command.VerifyLine{Report: report})
}

// export writes JSON lines. A failure after the first closes the connection, so that an
// incomplete export is recognized.
func (c *control) export(w http.ResponseWriter, r *http.Request) {
	now := c.served.now()
	s := now.set.Store(r.PathValue("store"))
	if s == nil {
		http.Error(w, plan.UnknownStore(now.config, r.PathValue("store")).Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := command.WriteLines(r.Context(), s, w, r.URL.Query().Get("secrets") == "true"); err != nil {
		c.log.Error("export", "store", s.Name(), "error", err)
		panic(http.ErrAbortHandler)
	}
}

// manageKeys is manageKeys of the serving process.
func (c *control) manageKeys(ctx context.Context, q command.KeysRequest) (*[]command.SealKey, error) {
	keys, err := command.ManageKeysIn(ctx, c.served.now().set.Store(config.SealKeyStore), q)
	if err == nil && q.Rotate {
		c.log.Info("a key for sealing was added", "keys", len(keys))
	}
	return &keys, err
}

// importSecrets is ImportSecrets of the serving process.
func (c *control) importSecrets(w http.ResponseWriter, r *http.Request) {
	now := c.served.now()
	var reply hold.Answer[command.Imported]
	result, err := command.ImportSecretsInto(r.Context(), now.plan, now.set, r.PathValue("store"), r.URL.Query().Get("update") == "true", r.Body)
	if err != nil {
		reply.Failure = hold.FailureOf(c.log, "import", err)
	} else {
		reply.Answer = result
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}

func (c *control) manageUsers(ctx context.Context, q command.UserRequest) (*command.UserReply, error) {
	now, done := c.served.use()
	defer done()
	if now.auth != nil {
		return command.ManageUsersIn(ctx, now.auth, q)
	}
	// A process without the roles that log in and send mails.
	o := now.plan.AuthOptions(now.set)
	o.Passwords.Registry, o.Passwords.Log = c.metrics, c.log
	users := account.New(o)
	defer users.Close()
	return command.ManageUsersIn(ctx, users, q)
}
