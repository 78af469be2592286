package modeling

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// Recover restores the files of a change that a process could not complete. It must be called before they are
// validated, and reports whether it has restored any. While another process serves the data folder, the change is that
// process's own, and nothing happens.
func Recover(data string, log *slog.Logger) (restored bool, err error) {
	j := journalIn(data)
	all, err := j.all()
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(all, func(e *entry) bool { return e.Pending })
	if at < 0 {
		return false, nil
	}
	lock, err := hold.LockData(data, "restore the configuration after an interrupted change")
	var held *hold.Held
	if errors.As(err, &held) && held.Holder.Doing == hold.DoingServe {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Unlock()
	e, err := j.get(all[at].Number)
	switch {
	case err != nil:
		return false, err
	case !e.Pending:
		return false, nil
	}
	if err := e.restore(); err != nil {
		return false, errs.Wrap(err, errs.Unavailable,
			"a change of the configuration was interrupted, and its files can't be restored")
	}
	log.Warn("a change of the configuration was interrupted; its files are as they were before",
		"change", e.Number, "keys", strings.Join(e.Keys, ", "))
	return true, j.remove(e.Number)
}
