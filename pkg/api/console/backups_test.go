package console_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/errs"
)

const aBackup = "20261123T030000.041Z-5f1c09ab"

// aPlace is a place with two backups, of which one can't be used, and the runs of its operations.
func aPlace() (*console.BackupPlace, *runs, *runs, console.Options) {
	place := &console.BackupPlace{
		Name: "/srv/backups", Folder: func(id string) string { return "belfry-backup-" + id },
		Latest: func(context.Context, int) ([]console.BackupRow, int, error) {
			return []console.BackupRow{{ID: "20261124T030000.041Z-5f1c09ab", Error: "it is damaged " + hostile},
				{ID: aBackup, Began: time.Unix(0, 0), Took: time.Second, Size: 2048, Added: 1024, Problems: 3}}, 7, nil
		},
		Download: func(_ context.Context, id string, begin func(), to io.Writer) error {
			if id != aBackup {
				return errs.New(errs.NotFound, "there is no backup %s", id)
			}
			begin()
			_, err := io.WriteString(to, "an archive")
			return err
		},
		Restore: console.Restore{Program: "/usr/bin/belfry", Config: "/etc/belfry.yaml", Data: "'/srv/my data'",
			Databases: []string{"main"}, Folders: []string{"/srv/stores"}, Bus: true},
	}
	makes, verifies := &runs{}, &runs{}
	return place, makes, verifies, console.Options{Backups: place, Operations: []console.Operation{
		operation(command.Backup.Untyped(), makes), operation(command.BackupVerify.Untyped(), verifies)}}
}

func TestBackupsAreListedMadeAndVerified(t *testing.T) {
	t.Parallel()
	place, makes, verifies, o := aPlace()
	f := start(t, o)
	r := is(t, f.get(f.Admin, "/console/backup"), http.StatusOK)
	shows(t, r, "/srv/backups", aBackup, "2.0 KiB", "1970-01-01 00:00:00", "lacks 3", "not verified lately", "unusable",
		"7 older ones", `href="/console/backup/download/`+aBackup+`"`, "Back up now",
		"/usr/bin/belfry restore --config /etc/belfry.yaml --data &#39;/srv/my data&#39; --backup "+aBackup,
		"mv &#39;/srv/my data&#39; &#39;/srv/my data&#39;.before", "mv /srv/stores", "<code>main</code>", "<code>RETRY</code>",
		"tar -xf belfry-backup-"+aBackup+".tar")
	if strings.Contains(r.Text, hostile) || strings.Count(r.Text, "/download/") != 1 {
		t.Errorf("a text is not escaped, or an unusable backup can be downloaded: %s", r.Text)
	}
	leads(t, f.post(f.Admin, "/console/backup", ""), "/console/backup")
	leads(t, f.post(f.Admin, "/console/backup/verify", "id="+aBackup), "/console/backup")
	leads(t, f.post(f.Admin, "/console/backup/verify/stop", ""), "/console/backup")
	leads(t, f.post(f.Admin, "/console/backup/stop", ""), "/console/backup")
	leads(t, f.get(f.Admin, "/console/backup/verify"), "/console/backup")
	if len(makes.started) != 1 || len(verifies.started) != 1 || !strings.HasSuffix(verifies.started[0], " id="+aBackup) ||
		makes.stopped != 1 || verifies.stopped != 1 {
		t.Errorf("%+v, %+v", makes, verifies)
	}
	is(t, f.post(f.Admin, "/console/backup/verify", "id="+strings.Repeat("x", 101)), http.StatusBadRequest)

	verifies.last = &console.Run{By: "ada", Began: time.Now(), In: command.BackupPart{ID: aBackup}}
	part := is(t, f.get(f.Admin, "/console/backup/verify", "Hx-Request", "true"), http.StatusOK)
	shows(t, part, "Verifying", aBackup, `hx-get="/console/backup/verify"`)
	if part.Header.Get("Hx-Refresh") != "" {
		t.Error("the page is loaded again while the run is in progress")
	}
	id := aBackup
	verifies.last.Ended, verifies.last.Out = time.Now(), &id
	is(t, f.get(f.Admin, "/console/backup/verify", "Hx-Request", "true"), http.StatusOK).HasHeader("Hx-Refresh", "true")
	shows(t, is(t, f.get(f.Admin, "/console/backup"), http.StatusOK), `<span class="tag good">verified `,
		"Every part has its hash")
	verifies.last.Err, verifies.last.Out = errs.New(errs.Invalid, "the backup is damaged"), nil
	shows(t, is(t, f.get(f.Admin, "/console/backup"), http.StatusOK), `<span class="tag bad">not verified</span>`,
		"the backup is damaged")

	place.Latest = func(context.Context, int) ([]console.BackupRow, int, error) {
		return nil, 0, errs.New(errs.Invalid, "there are no backups in /srv/backups")
	}
	missing := start(t, o)
	shows(t, is(t, missing.get(missing.Admin, "/console/backup"), http.StatusOK), "The backups can't be listed",
		"there are no backups in /srv/backups", "Back up now", "/usr/bin/belfry restore --config /etc/belfry.yaml")
	place.Latest = func(context.Context, int) ([]console.BackupRow, int, error) { return nil, 0, nil }
	none := start(t, o)
	shows(t, is(t, none.get(none.Admin, "/console/backup"), http.StatusOK), "There is none yet")
}

func TestABackupIsDownloadedAfterARecentLoginByAnAdmin(t *testing.T) {
	t.Parallel()
	place, _, _, o := aPlace()
	c := &clock{}
	f := start(t, o, c.use)
	path := "/console/backup/download/" + aBackup
	r := is(t, f.get(f.Admin, path), http.StatusOK)
	r.HasHeader("Content-Type", "application/x-tar")
	r.HasHeader("Content-Disposition", "attachment; filename=belfry-backup-"+aBackup+".tar")
	r.HasHeader("Content-Security-Policy", "default-src 'none'; sandbox")
	if r.Text != "an archive" {
		t.Errorf("%q is sent", r.Text)
	}
	if log := strings.Join(f.Logs.Lines(), ""); !strings.Contains(log, "a backup is being downloaded") ||
		!strings.Contains(log, aBackup) {
		t.Errorf("the log does not have the download: %s", log)
	}
	for _, id := range []string{"none", "..%2F..%2Fetc", url.PathEscape(hostile)} {
		is(t, f.get(f.Admin, "/console/backup/download/"+id), http.StatusNotFound)
	}
	shows(t, is(t, f.get(f.Admin, "/console/backup/download/a/b"), http.StatusNotFound), "no page /console/backup/")
	is(t, f.get("", path), http.StatusSeeOther)
	is(t, f.get(f.User, path), http.StatusForbidden)
	is(t, f.send("HEAD", f.Admin, path, ""), http.StatusBadRequest)

	// A part is never taken for the whole.
	place.Download = func(_ context.Context, _ string, begin func(), to io.Writer) error {
		begin()
		_, _ = io.WriteString(to, "a part")
		return errors.New("the disk is broken")
	}
	broken := start(t, o)
	request, err := http.NewRequestWithContext(t.Context(), "GET", broken.URL+path, nil)
	broken.Must(err)
	request.AddCookie(&http.Cookie{Name: "belfry", Value: broken.Admin})
	reply, err := http.DefaultClient.Do(request)
	if err == nil {
		_, err = io.ReadAll(reply.Body)
		_ = reply.Body.Close()
	}
	if err == nil {
		t.Error("a download that has failed ends as a whole one")
	}

	c.advance(11 * time.Minute)
	leads(t, f.get(f.Admin, path), stepUpURL+"?next="+url.QueryEscape("/console/backup")) // a file would leave the browser there
}
