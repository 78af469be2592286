package examine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/config"
	"belfry/internal/schedule"
	"belfry/pkg/app/command"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/binary/filestorage"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
	"belfry/pkg/operations/doctor"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// backendChecks check each backend that stores use. The serving process reports the state of its folders.
func (e *Examination) backendChecks() (all []doctor.Check) {
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(e.config.Stores)) {
		used[e.config.Stores[name].Backend] = true
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		b := e.config.Backends[name]
		switch {
		case b.File == nil:
			all = append(all, doctor.Check{Area: areaBackend, Subject: name,
				Ask: func(ctx context.Context) []doctor.Finding { return e.askBackend(ctx, name, b) }})
		case e.holder == nil && e.holderErr == nil:
			all = append(all, doctor.Check{Area: areaBackend, Subject: name,
				Ask: func(context.Context) []doctor.Finding { return e.askFolder(b) }})
		}
	}
	return all
}

// askBackend reports whether a backend replies and accepts the credentials. It opens no store, because that would
// create it.
func (e *Examination) askBackend(ctx context.Context, name string, b config.Backend) []doctor.Finding {
	opened, err := open.BackendOnce(ctx, name, b)
	var unused []open.Unused
	if err == nil {
		if err = opened.Ping(ctx); err == nil {
			unused, err = open.UnusedStores(ctx, e.config, map[string]driver.Backend{name: opened})
		}
		_ = opened.Close()
	}
	if err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "backend.unavailable", Says: MessageOf(err),
			Do: "check that its server runs, and the address and the credentials in backends." + name}}
	}
	return append([]doctor.Finding{{Level: doctor.OK, Name: "backend.ok",
		Says: b.Type + " replies and accepts the credentials"}}, UnusedFindings(unused)...)
}

// UnusedFindings reports stores with data that the configuration does not use.
func UnusedFindings(all []open.Unused) (found []doctor.Finding) {
	for _, u := range all {
		found = append(found,
			doctor.Finding{Level: doctor.OK, Area: areaBackend, Name: "backend.unused", Subject: u.Backend,
				Says: "the configuration lacks " + strings.Join(u.Stores, ", ") + ", whose objects are still stored",
				Do:   "add a store with this name and backend to serve its objects again"})
	}
	return found
}

// askFolder checks a folder that no process serves, without writing into it.
func (e *Examination) askFolder(b config.Backend) []doctor.Finding {
	if _, err := os.Stat(b.File.Folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return []doctor.Finding{noData(b.File.Folder, "does not exist: there is no data yet")}
		}
		return []doctor.Finding{{Level: doctor.Problem, Name: "backend.unavailable", Says: MessageOf(err),
			Do: "run this command as the user of belfry, and check who owns the folder"}}
	}
	release, held := e.hold()
	if held != nil {
		return []doctor.Finding{*held}
	}
	defer release()
	err := filestore.Check(b.File.Folder, filestore.Options{CacheBytes: open.CommandCache})
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return []doctor.Finding{noData(b.File.Folder, "has no data yet")}
	case err != nil:
		return []doctor.Finding{{Level: doctor.Problem, Name: "backend.damaged",
			Says: MessageOf(err),
			Do: "see docs/guides/back-up.md: check the disk, and restore the latest backup into " +
				"an empty folder if the files are damaged"}}
	}
	return []doctor.Finding{{Level: doctor.OK, Name: "backend.ok", Says: "the folder can be opened"}}
}

// hold locks the data folder, if it exists, while a folder is read. It returns a finding if it can't.
func (e *Examination) hold() (release func(), held *doctor.Finding) {
	e.opening.Lock() // the checks of several folders lock the data folder one after the other
	if _, err := os.Stat(e.config.Data); err != nil {
		return e.opening.Unlock, nil
	}
	lock, err := hold.LockData(e.config.Data, "doctor")
	if err == nil {
		return func() { lock.Unlock(); e.opening.Unlock() }, nil
	}
	e.opening.Unlock()
	if by := (*hold.Held)(nil); errors.As(err, &by) {
		return nil, &doctor.Finding{Level: doctor.Unseen, Name: "backend.held", Says: MessageOf(err),
			Do: "repeat this command"}
	}
	return nil, &doctor.Finding{Level: doctor.Problem, Name: "backend.unavailable", Says: MessageOf(err),
		Do: "run this command as the user of belfry, and check who owns the folder"}
}

func noData(folder, says string) doctor.Finding {
	return doctor.Finding{Level: doctor.Warning, Name: "backend.empty",
		Says: "the folder " + folder + " " + says + ", or the key data names another folder",
		Do:   "the first `belfry serve` creates it; if there was data, check data in the configuration, and --data"}
}

// storageChecks check each storage of binaries.
func (e *Examination) storageChecks() (all []doctor.Check) {
	for _, name := range slices.Sorted(maps.Keys(e.config.Binaries)) {
		b := e.config.Binaries[name]
		all = append(all,
			doctor.Check{Area: areaBinaries, Subject: name, Ask: func(ctx context.Context) []doctor.Finding {
				if err := pingStorage(ctx, b); err != nil {
					return []doctor.Finding{{Level: doctor.Problem, Name: "binaries.unavailable", Says: MessageOf(err),
						Do: "check that its server runs, that the bucket or the folder exists, and the credentials " +
							"(AWS_* or ~/.aws)"}}
				}
				return []doctor.Finding{{Level: doctor.OK, Name: "binaries.ok", Says: "the storage replies"}}
			}})
	}
	return all
}

// pingStorage checks a storage without creating its folder: a missing folder has no files yet.
func pingStorage(ctx context.Context, b *config.Binary) error {
	if b.S3 == nil {
		s, err := filestorage.OpenExisting(b.File.Folder)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(s.Ping(ctx), s.Close())
	}
	s, err := open.Storage(ctx, b)
	if err != nil {
		return err
	}
	return errors.Join(s.Ping(ctx), s.Close())
}

// usesMailer reports whether mails are sent by a mailer: unused mailers are not checked.
func (e *Examination) usesMailer(name string) bool {
	email := e.config.Authentication.Email
	return e.config.Mailers[name].SMTP != nil || email != nil && email.Mailer == name
}

// askMailer connects to a mail server, and logs in.
func (e *Examination) askMailer(ctx context.Context, name string) []doctor.Finding {
	m := e.config.Mailers[name]
	if m.SMTP == nil {
		if e.config.Local(e.config.Listen) {
			return []doctor.Finding{{Level: doctor.OK, Name: "mailer.ok",
				Says: "mails are written into " + m.File.Folder + ", for development"}}
		}
		return []doctor.Finding{{Level: doctor.Warning,
			Name: "mailer.folder", Says: "mails are written into " + m.File.Folder +
				", not sent: nobody receives the link that a registration needs",
			Do: "set mailers." + name + ".type: smtp, with host, user and password"}}
	}
	if err := mail.Probe(ctx, e.plan.SMTPOptions(m.SMTP)); err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "mailer.unavailable", Says: MessageOf(err),
			Do: "correct mailers." + name + ", or ask the operator of the mail server; mails are kept and sent later"}}
	}
	says := "the server replies"
	if m.SMTP.User != "" {
		says += " and accepts the login"
	}
	return []doctor.Finding{{Level: doctor.OK, Name: "mailer.ok",
		Says: says + "; whether it delivers mails is not known"}}
}

// Limits of free space below which a disk is nearly full. On a large disk a small part suffices for a long time.
const (
	fewBytes     = 1 << 30
	veryFewBytes = 128 << 20
	fewPart      = 10 // a tenth
)

// askDisks checks the disks of the folders that belfry writes.
func (e *Examination) askDisks(context.Context) (all []doctor.Finding) {
	for _, at := range WrittenFolders(e.config) {
		folder := Existing(at.Folder)
		if !mayWrite(folder) && e.holderErr != nil { // the user of belfry may
			all = append(all, doctor.Finding{Level: doctor.Unseen, Name: "disk.unknown", Subject: at.Name,
				Says: "this user may not write to " + folder + ", and is not the user of belfry",
				Do:   "run this command as the user of belfry"})
			continue
		}
		if !mayWrite(folder) {
			all = append(all, doctor.Finding{Level: doctor.Problem, Name: "disk.readOnly", Subject: at.Name,
				Says: "this user may not write to " + folder,
				Do: "run this command as the user of belfry; if it is, give it the folder with chown, and check " +
					"that the disk is not mounted read-only"})
			continue
		}
		free, total, known := Space(folder)
		if !known || total == 0 {
			all = append(all, doctor.Finding{Level: doctor.Unseen, Name: "disk.unknown", Subject: at.Name,
				Says: "the free space of the disk of " + folder + " can't be read", Do: "see `df " + folder + "`"})
			continue
		}
		all = append(all, JudgeDisk(at.Name, folder, free, total))
	}
	return all
}

// JudgeDisk reports the free space on the disk of a folder.
func JudgeDisk(name, folder string, free, total int64) doctor.Finding {
	f := doctor.Finding{Level: doctor.OK, Name: "disk.ok", Subject: name,
		Says: fmt.Sprintf("%s of %s are free at %s", bytesOf(free), bytesOf(total), folder)}
	switch {
	case free < veryFewBytes:
		f.Level, f.Name = doctor.Problem, "disk.full"
		f.Do = "free space at once: while the disk is full, writes fail with 503"
	case free < fewBytes && free < total/fewPart:
		f.Level, f.Name = doctor.Warning, "disk.low"
		f.Do = "free space, or move the folder to a larger disk, before writes fail"
	}
	return f
}

// writtenFolder is a folder that belfry writes.
type writtenFolder struct{ Name, Folder string }

// WrittenFolders returns the folders that belfry writes. The data folder stands for all folders below it.
func WrittenFolders(c *config.Config) []writtenFolder {
	all := []writtenFolder{{"data", c.Data}}
	add := func(name, folder string) {
		below, err := filepath.Rel(c.Data, folder)
		if folder != "" && (err != nil || !filepath.IsLocal(below)) {
			all = append(all, writtenFolder{name, folder})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		if f := c.Backends[name].File; f != nil && slices.ContainsFunc(slices.Sorted(maps.Keys(c.Stores)),
			func(s string) bool { return c.Stores[s].Backend == name }) {
			add("backend "+name, f.Folder)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Binaries)) {
		if f := c.Binaries[name].File; f != nil && c.Binaries[name].S3 == nil {
			add("binaries "+name, f.Folder)
		}
	}
	if c.Backup != nil && c.Backup.S3 == nil {
		add("backup", c.Backup.Folder)
	}
	return all
}

// Existing returns the folder, or its nearest existing parent, in which it will be created.
func Existing(folder string) string {
	for {
		if _, err := os.Stat(folder); err == nil || filepath.Dir(folder) == folder {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

func bytesOf(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

// staleBackup is the maximum age of the latest backup if only the command makes backups.
const staleBackup = 7 * 24 * time.Hour

// askBackups checks the backups in their place.
func (e *Examination) askBackups(ctx context.Context) []doctor.Finding {
	if e.config.Backup == nil {
		return []doctor.Finding{{Level: doctor.Warning, Name: "backup.none", Says: "no backups are configured",
			Do: "set backup, with a schedule and a place on another disk: docs/guides/back-up.md"}}
	}
	place := e.config.Backup.String()
	all, err := command.ListBackups(ctx, e.config, nil)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(all) == 0 {
		return []doctor.Finding{{Level: doctor.Problem, Name: "backup.missing", Says: "there is no backup in " + place,
			Do: "make one with `belfry backup`; if there were backups, find out why they were removed"}}
	}
	if err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "backup.unavailable", Says: MessageOf(err),
			Do: "check the place of backups, and its credentials: " + place}}
	}
	var found []doctor.Finding
	var last time.Time
	for _, b := range all {
		if b.Error != "" {
			found = append(found, doctor.Finding{Level: doctor.Problem, Name: "backup.damaged", Subject: b.ID,
				Says: b.Error, Do: "`belfry backup verify` reads all of it; make another one with `belfry backup`"})
		} else if b.Ended.After(last) {
			last = b.Ended
		}
	}
	now := e.Now()
	due := last.Add(staleBackup)
	if s := e.config.Backup.Schedule; s != (schedule.Schedule{}) {
		due = s.Next(s.Next(last.Local())) // one may be in progress
	}
	switch {
	case last.IsZero():
	case now.After(due):
		found = append(found, doctor.Finding{Level: doctor.Problem,
			Name: "backup.old", Says: "the latest usable backup is of " + last.UTC().Format(time.RFC3339) +
				", and another one was due since",
			Do: "see the reason in belfry's log and the console; `belfry backup` makes one now"})
	default:
		found = append(found, doctor.Finding{Level: doctor.OK,
			Name: "backup.ok", Says: "the latest is of " + last.UTC().Format(time.RFC3339) +
				"; `belfry backup verify` checks whether it can be restored"})
	}
	return found
}
