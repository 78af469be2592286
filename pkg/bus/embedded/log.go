package embedded

import (
	"context"
	"fmt"
	"log/slog"
)

// serverLog logs the server's messages with slog. Notices become debug messages:
// they are useless to an operator of belfry.
type serverLog struct {
	log   *slog.Logger
	fatal chan<- string // receives the first fatal message
}

func (l *serverLog) write(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, args...), "from", "nats-server")
	}
}

func (l *serverLog) Noticef(format string, args ...any) { l.write(slog.LevelDebug, format, args) }
func (l *serverLog) Warnf(format string, args ...any)   { l.write(slog.LevelWarn, format, args) }
func (l *serverLog) Errorf(format string, args ...any)  { l.write(slog.LevelError, format, args) }
func (l *serverLog) Debugf(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }
func (l *serverLog) Tracef(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }

// Fatalf must not end the process: the caller of Start decides.
func (l *serverLog) Fatalf(format string, args ...any) {
	l.write(slog.LevelError, format, args)
	select {
	case l.fatal <- fmt.Sprintf(format, args...):
	default:
	}
}
