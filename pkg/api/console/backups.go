package console

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// Paths of the operations that make and verify backups.
const (
	BackupPath       = "backup"
	BackupVerifyPath = "backup/verify"
)

// BackupPlace is what the view Backups needs besides the operations at BackupPath and BackupVerifyPath.
type BackupPlace struct {
	Name string // the folder, or the bucket
	// Latest returns the n latest backups, the latest first, and how many older ones there are.
	Latest func(ctx context.Context, n int) (all []BackupRow, older int, err error)
	// Download writes a backup as a tar archive. begin is called before the first byte, and not if there is no such
	// backup. Limited while this process sends another one.
	Download func(ctx context.Context, id string, begin func(), to io.Writer) error
	Folder   func(id string) string // that the archive has
	Restore  Restore
}

// BackupRow is a backup.
type BackupRow struct {
	ID, Version string
	Began       time.Time
	Took        time.Duration
	Size, Added int64
	Problems    int    // parts of the data that it lacks
	Error       string // why it can't be used
}

// Restore is what a restore on this machine needs to know. Its texts are words of a shell.
type Restore struct {
	Program   string   // that serves
	Config    string   // the configuration file
	Data      string   // the data folder
	Databases []string // backends that have to be empty, besides folders
	Folders   []string // of backends and files outside of the data folder
	Bus       bool     // there is an external bus
}

const (
	shownBackups  = 50
	listedIn      = 5 * time.Second // for which the page waits for the destination
	downloadPause = time.Minute     // after which a client that takes nothing is cut off
)

// backupsView has the page of backups. Runs are those of operations.
type backupsView struct {
	operationView
	verify operationView
	place  BackupPlace
}

func newBackupsView(v operationView, verify *Operation, place *BackupPlace) backupsView {
	all := backupsView{operationView: v, place: *place}
	if verify != nil {
		all.verify = operationView{Operation: *verify, names: v.names}
	}
	return all
}

func (v backupsView) routes() []route {
	all := []route{get("/"+v.Path, v.show), post("/"+v.Path, v.start), post("/"+v.Path+"/stop", v.stop),
		sendingFile(limitedAs(httpkit.List, get("/"+v.Path+"/download/:id", v.download)))}
	if v.verify.Runs != nil {
		all = append(all, get("/"+BackupVerifyPath, v.showVerify), post("/"+BackupVerifyPath, v.startVerify),
			post("/"+BackupVerifyPath+"/stop", v.stopVerify))
	}
	return all
}

// backupsPage is the data of the page.
type backupsPage struct {
	operationPage
	Place    string
	Rows     []BackupRow
	Older    int
	Problem  string // why the list can't be read
	Verify   *Run   // the last one; nil: none
	Verified string // the backup that it has found to be whole; "" for none
	Of       string // the backup that it is about
	Verifies bool   // there is such an operation
	Restore  Restore
	Example  string // the id of the latest backup
	Extract  string // the folder of its archive
}

func (v backupsView) show(r *request) error {
	last, err := v.Runs.Last(r.Context())
	if err != nil {
		return err
	}
	p := backupsPage{operationPage: operationPage{Operation: v.Operation, Form: v.Fields(), Run: last, names: v.names},
		Place: v.place.Name, Restore: v.place.Restore, Verifies: v.verify.Runs != nil}
	if r.Partial() {
		return v.part(r, "state", last, p)
	}
	if err := v.addVerify(r, &p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), listedIn)
	defer cancel()
	if p.Rows, p.Older, err = v.place.Latest(ctx, shownBackups); err != nil {
		r.RecordError(err)
		p.Problem, _ = messageOf(err)
	}
	for _, row := range p.Rows {
		if row.Error == "" {
			p.Example, p.Extract = row.ID, v.place.Folder(row.ID)
			break
		}
	}
	return r.Page("backup", v.Title, p)
}

// part replies with the state of a run. Once it has ended, the page is loaded again: the list has changed.
func (v backupsView) part(r *request, block string, run *Run, data any) error {
	if run == nil || !run.Running() {
		r.SetHeader("Hx-Refresh", "true")
	}
	return r.Fragment("backup", block, data)
}

// addVerify adds the last verification.
func (v backupsView) addVerify(r *request, p *backupsPage) (err error) {
	if v.verify.Runs == nil {
		return nil
	}
	if p.Verify, err = v.verify.Runs.Last(r.Context()); err != nil || p.Verify == nil {
		return err
	}
	if in, ok := p.Verify.In.(interface{ BackupID() string }); ok {
		p.Of = in.BackupID()
	}
	if id, ok := p.Verify.Out.(*string); ok && p.Verify.Err == nil && !p.Verify.Running() {
		p.Verified, p.Of = *id, *id
	}
	return nil
}

func (v backupsView) showVerify(r *request) error {
	if !r.Partial() {
		r.seeOther(pathOf(BackupPath))
		return nil
	}
	p := backupsPage{operationPage: operationPage{Operation: v.Operation}, Place: v.place.Name, Verifies: true}
	if err := v.addVerify(r, &p); err != nil {
		return err
	}
	return v.part(r, "verification", p.Verify, p)
}

func (v backupsView) startVerify(r *request) error {
	form, log, err := v.verify.read(r)
	if err != nil {
		return err
	}
	if err := v.verify.Runs.Start(r.Context(), r.name(), r.ID, form); err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "a "+v.verify.Kind+" was started in the console", log...)
	return r.Redirect(pathOf(BackupPath), "")
}

func (v backupsView) stopVerify(r *request) error {
	if err := v.verify.Runs.Stop(r.Context()); err != nil {
		return err
	}
	return r.Redirect(pathOf(BackupPath), "The verification is being stopped.")
}

// download sends a backup as a tar archive. It has all data, so it needs a recent login. An error after the beginning
// cuts the connection, so that the browser does not take a part for the whole.
func (v backupsView) download(r *request) error {
	if err := r.console.service.Sessions.RequireFresh(r.Context(), r.Session); err != nil {
		return err
	}
	id, err := r.PathParam("id")
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	if r.Request.Method == http.MethodHead { // nothing is opened for a client that wants nothing
		return errs.New(errs.Invalid, "a backup can only be downloaded: send GET")
	}
	to := &download{request: r, ctx: ctx, checked: time.Now(), conn: http.NewResponseController(r.Exchange)}
	attrs := []slog.Attr{slog.String("backup", httpkit.Truncate(id, 100)),
		slog.String("actor", r.Session.User.UUID)}
	err = v.place.Download(r.Context(), id, func() {
		r.Log(slog.LevelWarn, "a backup is being downloaded from the console", attrs...)
		r.sendsFile("application/x-tar", v.place.Folder(id)+".tar")
		r.WriteHeader(http.StatusOK)
		httpkit.Reads(r.Context())
	}, to)
	switch {
	case err == nil:
		attrs = append(attrs, slog.Int64("bytes", to.sent))
		r.Log(slog.LevelInfo, "a backup was downloaded from the console", attrs...)
		return nil
	case !r.Replied():
		return err
	}
	r.RecordError(err)
	panic(http.ErrAbortHandler)
}

// download is where a backup is written: the connection of an admin, as long as the user is one.
type download struct {
	*request
	ctx     context.Context
	conn    *http.ResponseController
	checked time.Time // when the rights of the user were read
	renewed time.Time // when the deadline of the connection was set
	sent    int64
}

// Write implements io.Writer.
func (d *download) Write(p []byte) (int, error) {
	now := time.Now()
	if now.Sub(d.checked) > exportRecheck {
		d.checked = now
		var err error
		if d.ctx, err = d.renew(d.ctx); err != nil {
			return 0, err
		}
	}
	if now.Sub(d.renewed) > time.Second {
		d.renewed = now
		// If the connection does not support deadlines, the server's deadline applies.
		_ = d.conn.SetWriteDeadline(now.Add(downloadPause))
	}
	n, err := d.request.Write(p)
	d.sent += int64(n)
	return n, err
}
