// Package control serves requests of commands to the process that holds the data folder, and what that process says of itself to the doctor.
package control

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
	"belfry/pkg/app/backups"
	"belfry/pkg/app/command"
	"belfry/pkg/app/data"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/port"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/operations/backup"
	"belfry/pkg/store"
)

// Control serves requests of commands that need the data folder while this process holds it. A
// process that can read the folder's lock file may make them.
type Control struct {
	Served  *serving.Current
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Folder  *data.Folder
	Backups *backups.Schedule
	Mailers *mailers.Mailers
	Self    *Self
	Reload  func(ctx context.Context) (*command.Reloaded, error)

	port *port.Port
}

// Part is how a process starts, changes and stops it.
func (c *Control) Part() serving.Part {
	return serving.Part{Name: "control", Start: c.start, Stop: func(context.Context) error { return c.port.Close() }}
}

func (c *Control) start(ctx context.Context, _ *serving.Generation) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	server := &http.Server{Handler: guarded(token, c.mux()), ReadHeaderTimeout: 5 * time.Second}
	c.port = port.Serve(server, listener, func(err error) { c.Log.Error("the control server has failed", "error", err) })
	return c.Folder.Publish("http://"+listener.Addr().String(), token)
}

func (c *Control) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", c.verify)
	mux.HandleFunc("POST /backup", c.backup)
	mux.HandleFunc("GET /export/{store}", c.export)
	mux.HandleFunc("POST /import/{store}", c.importSecrets)
	mux.HandleFunc("POST /access", hold.Answering(c.Log, 4<<20, func(command.Question) string { return "access check" }, func(ctx context.Context, q command.Question) (*command.Access, error) {
		now := c.Served.Now()
		return command.Decide(ctx, now.Config, now.Set, q)
	}))
	mux.HandleFunc("POST /schema", hold.Answering(c.Log, command.MaxSchemaQuestion, func(command.SchemaQuestion) string { return "schema check" }, func(ctx context.Context, q command.SchemaQuestion) (*store.SchemaReport, error) {
		now := c.Served.Now()
		return command.CheckSchemaIn(ctx, now.Config, now.Set, q)
	}))
	mux.HandleFunc("POST /users", hold.Answering(c.Log, command.MaxUserRequest, func(q command.UserRequest) string { return "user " + string(q.Act) }, c.manageUsers))
	mux.HandleFunc("POST /mail", hold.Answering(c.Log, 4<<10, func(command.MailTest) string { return "mail test" }, func(ctx context.Context, q command.MailTest) (*command.MailTested, error) {
		now, done := c.Served.Use()
		defer done()
		return c.Mailers.Test(ctx, now, q)
	}))
	mux.HandleFunc("POST /seal-keys", hold.Answering(c.Log, 1<<10, func(command.KeysRequest) string { return "keys" }, c.manageKeys))
	mux.HandleFunc("POST /doctor", hold.Answering(c.Log, 1<<10, func(struct{}) string { return "doctor" }, func(ctx context.Context, _ struct{}) (*examine.DoctorReply, error) {
		return c.Self.examine(ctx)
	}))
	mux.HandleFunc("POST /reload", hold.Answering(c.Log, 1<<10, func(struct{}) string { return "reload" }, func(ctx context.Context, _ struct{}) (*command.Reloaded, error) { return c.Reload(ctx) }))
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
func (c *Control) backup(w http.ResponseWriter, r *http.Request) {
	var q command.BackupRequest
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&q)
	var result *command.BackupResult
	if err == nil {
		var last time.Time
		result, err = c.Backups.Maker().Make(r.Context(), command.BackupOptions{To: q.To, Progress: func(p backup.Progress) {
			if now := time.Now(); now.Sub(last) >= command.ProgressInterval {
				last = now
				_ = lines.Encode(command.BackupLine{Progress: &p})
				_ = http.NewResponseController(w).Flush()
			}
		}})
	}
	if err != nil {
		if r.Context().Err() == nil {
			c.Log.Error("a backup that a command requested has failed", "error", err)
		}
		failed := hold.FailureOf(c.Log, "backup", err)
		_ = lines.Encode(command.BackupLine{Failure: &failed})
		return
	}
	_ = lines.Encode(command.BackupLine{Result: result})
}

// verify replies with lines of JSON, see command.VerifyLine. It ends when the client disconnects.
func (c *Control) verify(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	o := command.VerifyOptions{Repair: query.Get("repair") == "true", Deep: query.Get("deep") == "true"}
	o.Progress = func(p verify.Progress) {
		if lines.Encode(command.VerifyLine{Progress: &p}) == nil {
			_ = http.NewResponseController(w).Flush()
		}
	}
	report, now := &command.Report{}, c.Served.Now()
	err := command.VerifyAll(r.Context(), now.Set, open.InOrder(now.Binaries), o, verify.Options{RecheckFor: command.DifferenceTimeout}, report)
	if err != nil {
		_ = lines.Encode(command.VerifyLine{Error: err.Error()})
		return
	}
	_ = lines.Encode(command.VerifyLine{Report: report})
}

// export writes JSON lines. A failure after the first closes the connection, so that an
// incomplete export is recognized.
func (c *Control) export(w http.ResponseWriter, r *http.Request) {
	now := c.Served.Now()
	s := now.Set.Store(r.PathValue("store"))
	if s == nil {
		http.Error(w, plan.UnknownStore(now.Config, r.PathValue("store")).Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	if err := command.WriteLines(r.Context(), s, w, r.URL.Query().Get("secrets") == "true"); err != nil {
		c.Log.Error("export", "store", s.Name(), "error", err)
		panic(http.ErrAbortHandler)
	}
}

// manageKeys is command.ManageKeys for the serving process.
func (c *Control) manageKeys(ctx context.Context, q command.KeysRequest) (*[]command.SealKey, error) {
	keys, err := command.ManageKeysIn(ctx, c.Served.Now().Set.Store(config.SealKeyStore), q)
	if err == nil && q.Rotate {
		c.Log.Info("a key for sealing was added", "keys", len(keys))
	}
	return &keys, err
}

// importSecrets is command.ImportSecrets for the serving process.
func (c *Control) importSecrets(w http.ResponseWriter, r *http.Request) {
	now := c.Served.Now()
	var reply hold.Answer[command.Imported]
	result, err := command.ImportSecretsInto(r.Context(), now.Plan, now.Set, r.PathValue("store"), r.URL.Query().Get("update") == "true", r.Body)
	if err != nil {
		reply.Failure = hold.FailureOf(c.Log, "import", err)
	} else {
		reply.Answer = result
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}

func (c *Control) manageUsers(ctx context.Context, q command.UserRequest) (*command.UserReply, error) {
	now, done := c.Served.Use()
	defer done()
	if now.Auth != nil {
		return command.ManageUsersIn(ctx, now.Auth, q)
	}
	// A process without the roles that log in and send mails.
	o := now.Plan.AuthOptions(now.Set)
	o.Passwords.Registry, o.Passwords.Log = c.Metrics, c.Log
	users := account.New(o)
	defer users.Close()
	return command.ManageUsersIn(ctx, users, q)
}
