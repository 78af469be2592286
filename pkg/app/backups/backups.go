// Package backups is the part of a process that makes the backups of a schedule.
package backups

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/backoff"
	"belfry/internal/prom"
	"belfry/internal/schedule"
	"belfry/pkg/app/command"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/operations/backup"
)

const (
	scheduleInterval = 30 * time.Second // between reads of the state, which other processes change
	backupRetryMin   = time.Minute
	backupRetryMax   = time.Hour
)

// Schedule makes the backups of the schedule. All processes of an installation run it: the process that takes the lease
// when a backup is due makes the backup. Without a schedule it reads the results of commands, for metrics and alerts.
type Schedule struct {
	Served  *serving.Current
	Run     string // of the process; unique
	Log     *slog.Logger
	Metrics prometheus.Registerer

	Last    atomic.Pointer[backup.State] // nil: unknown, or no place is configured
	retries *backoff.Backoff
	retryAt time.Time // of a backup that has failed
	running part.Background
}

// Part returns the functions that start and stop it.
func (s *Schedule) Part() serving.Part {
	return serving.Part{Name: "the schedule of backups", Start: s.start, Stop: s.running.Stop, Check: s.failed}
}

func (s *Schedule) start(context.Context, *serving.Generation) error {
	s.retries = backoff.New(backupRetryMin, backupRetryMax)
	s.running.Go(func(ctx context.Context) {
		for backoff.Sleep(ctx, s.poll(ctx)) == nil {
		}
	})
	s.Metrics.MustRegister(s.collector())
	return nil
}

// Maker makes backups of the current generation. Each has a lease of its own.
func (s *Schedule) Maker() *command.Maker {
	now := s.Served.Now()
	return &command.Maker{Plan: now.Plan, Set: now.Set, Bus: now.Bus, Storages: now.Storages, Backends: now.Backends,
		Log: s.Log, Holder: command.NewHolder(now.Config, s.Run)}
}

// poll makes a backup that is due, and returns when to poll again.
func (s *Schedule) poll(ctx context.Context) time.Duration {
	configured := s.Served.Now().Config.Backup
	if configured == nil {
		s.Last.Store(nil)
		return scheduleInterval
	}
	m := s.Maker()
	state, err := m.States().Get(ctx)
	if err != nil {
		return scheduleInterval // the backend is unavailable, as other parts report
	}
	s.Last.Store(&state)
	if configured.Schedule == (schedule.Schedule{}) {
		return scheduleInterval
	}
	now := time.Now()
	if next := later(nextBackup(&state, configured.Schedule), s.retryAt); next.After(now) {
		return min(next.Sub(now), scheduleInterval)
	}
	stored, taken, err := m.States().Take(ctx, m.Holder,
		func(state *backup.State) bool { return !nextBackup(state, configured.Schedule).After(time.Now()) })
	if err != nil || !taken {
		return scheduleInterval
	}
	_, err = m.MakeTaken(ctx, stored.Installation, command.BackupOptions{})
	switch {
	case err == nil:
		s.retries.Reset()
	case ctx.Err() != nil:
		s.Log.Info("a backup was interrupted by the stop; it is made after the next start")
	case errors.Is(err, backup.ErrLost):
		s.Log.Warn("a backup was left to another process", "error", err)
	default:
		wait := s.retries.Next()
		s.retryAt = time.Now().Add(wait)
		s.Log.Error("a backup has failed; retrying", "error", err, "in", wait.Round(time.Second))
	}
	return time.Second // then the state has the result
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nextBackup is when the next backup of a schedule is due: the first one is due at once.
func nextBackup(state *backup.State, of schedule.Schedule) time.Time {
	if state.Due.IsZero() {
		return state.Due
	}
	return of.Next(state.Due.Local())
}

// failed reports that the latest backup of the schedule has failed; the log has the reason.
func (s *Schedule) failed() []string {
	if state := s.Last.Load(); state != nil && state.Error != "" {
		return []string{"the latest backup has failed"}
	}
	return nil
}

var (
	backupTimeDesc = prometheus.NewDesc("belfry_backup_last_success_timestamp_seconds",
		"When the latest backup in the configured place ended; 0: no backup.", nil, nil)
	backupFailedDesc = prometheus.NewDesc("belfry_backup_failed",
		"1 while the latest attempt at a backup in the configured place has failed.", nil, nil)
	backupDurationDesc = prometheus.NewDesc("belfry_backup_last_duration_seconds",
		"The duration of the latest successful backup.", nil, nil)
	backupSizeDesc = prometheus.NewDesc("belfry_backup_last_size_bytes",
		"The size of all parts of the latest successful backup.", nil, nil)
	backupProblemsDesc = prometheus.NewDesc("belfry_backup_last_problems",
		"The number of damaged parts of the data that the latest successful backup lacks.", nil, nil)
)

// collector are the metrics of backups, if a place is configured.
func (s *Schedule) collector() prometheus.Collector {
	return prom.Computed(s.collect, backupTimeDesc, backupFailedDesc, backupDurationDesc, backupSizeDesc,
		backupProblemsDesc)
}

func (s *Schedule) collect(_ context.Context, values prom.Values) {
	state := s.Last.Load()
	if state == nil {
		return
	}
	ended := 0.0
	if !state.Ended.IsZero() {
		ended = float64(state.Ended.UnixMilli()) / 1000
	}
	values.Gauge(backupTimeDesc, ended)
	values.Gauge(backupFailedDesc, prom.OneIf(state.Error != ""))
	for _, attempt := range state.Recent {
		if attempt.ID == "" {
			continue
		}
		values.Gauge(backupDurationDesc, attempt.Ended.Sub(attempt.Began).Seconds())
		values.Gauge(backupSizeDesc, float64(attempt.Size))
		values.Gauge(backupProblemsDesc, float64(attempt.Problems))
		break
	}
}
