package app

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/backoff"
	"belfry/internal/schedule"
	"belfry/pkg/app/command"
	"belfry/pkg/operations/backup"
)

const (
	scheduleInterval = 30 * time.Second // between reads of the state, which other processes change
	backupRetryMin   = time.Minute
	backupRetryMax   = time.Hour
)

// startBackups makes the backups of the schedule. All processes of an installation do: the one that takes the lease
// when a backup is due makes it. Without a schedule it reads the results of commands, for metrics and alerts.
func (a *App) startBackups(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s := &scheduled{app: a, retries: backoff.New(backupRetryMin, backupRetryMax)}
	go func() {
		defer close(done)
		s.run(ctx)
	}()
	a.onStop("the schedule of backups", func(context.Context) error {
		cancel()
		<-done
		return nil
	})
	return nil
}

// scheduled makes the backups of a schedule.
type scheduled struct {
	app     *App
	retries *backoff.Backoff
	retryAt time.Time // of a backup that has failed
}

func (s *scheduled) run(ctx context.Context) {
	for {
		wait := s.poll(ctx)
		if backoff.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// poll makes a backup that is due, and returns when to poll again.
func (s *scheduled) poll(ctx context.Context) time.Duration {
	configured := s.app.now().config.Backup
	if configured == nil {
		s.app.lastBackup.Store(nil)
		return scheduleInterval
	}
	m := s.app.backups()
	state, err := m.States().Get(ctx)
	if err != nil {
		return scheduleInterval // the backend is unavailable, as other parts say
	}
	s.app.lastBackup.Store(&state)
	if configured.Schedule == (schedule.Schedule{}) {
		return scheduleInterval
	}
	now := time.Now()
	if next := later(nextBackup(&state, configured.Schedule), s.retryAt); next.After(now) {
		return min(next.Sub(now), scheduleInterval)
	}
	stored, taken, err := m.States().Take(ctx, m.Holder, func(state *backup.State) bool { return !nextBackup(state, configured.Schedule).After(time.Now()) })
	if err != nil || !taken {
		return scheduleInterval
	}
	_, err = m.MakeTaken(ctx, stored.Installation, command.BackupOptions{})
	switch {
	case err == nil:
		s.retries.Reset()
	case ctx.Err() != nil:
		s.app.log.Info("a backup was interrupted by the stop; it is made after the next start")
	case errors.Is(err, backup.ErrLost):
		s.app.log.Warn("a backup was left to another process", "error", err)
	default:
		wait := s.retries.Next()
		s.retryAt = time.Now().Add(wait)
		s.app.log.Error("a backup has failed; retrying", "error", err, "in", wait.Round(time.Second))
	}
	return time.Second // then the state has the result
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextBackup is when the next backup of a schedule is due: at once if there was none.
func nextBackup(state *backup.State, of schedule.Schedule) time.Time {
	if state.Due.IsZero() {
		return state.Due
	}
	return of.Next(state.Due.Local())
}

// failedBackup says that the latest backup of the schedule has failed, which the log explains.
func (a *App) failedBackup() []string {
	if state := a.lastBackup.Load(); state != nil && state.Error != "" {
		return []string{"the latest backup has failed"}
	}
	return nil
}

var (
	backupTimeDesc     = prometheus.NewDesc("belfry_backup_last_success_timestamp_seconds", "When the latest backup in the configured place ended; 0: there is none.", nil, nil)
	backupFailedDesc   = prometheus.NewDesc("belfry_backup_failed", "1 while the latest attempt at a backup in the configured place has failed.", nil, nil)
	backupDurationDesc = prometheus.NewDesc("belfry_backup_last_duration_seconds", "How long the latest backup took that succeeded.", nil, nil)
	backupSizeDesc     = prometheus.NewDesc("belfry_backup_last_size_bytes", "The size of all parts of the latest backup that succeeded.", nil, nil)
	backupProblemsDesc = prometheus.NewDesc("belfry_backup_last_problems", "How much the latest backup that succeeded lacks, because it is damaged.", nil, nil)
)

// collectBackups adds the metrics of backups, if a place is configured.
func (a *App) collectBackups(gauge func(*prometheus.Desc, float64, ...string)) {
	state := a.lastBackup.Load()
	if state == nil {
		return
	}
	ended := 0.0
	if !state.Ended.IsZero() {
		ended = float64(state.Ended.UnixMilli()) / 1000
	}
	gauge(backupTimeDesc, ended)
	gauge(backupFailedDesc, oneIf(state.Error != ""))
	for _, attempt := range state.Recent {
		if attempt.ID == "" {
			continue
		}
		gauge(backupDurationDesc, attempt.Ended.Sub(attempt.Began).Seconds())
		gauge(backupSizeDesc, float64(attempt.Size))
		gauge(backupProblemsDesc, float64(attempt.Problems))
		break
	}
}
