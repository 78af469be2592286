// Package schedule computes when something is due that is repeated: at intervals, or by
// a cron expression.
package schedule

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/adhocore/gronx"
)

// Schedule is when something is due. The zero Schedule is never.
type Schedule struct {
	every time.Duration
	cron  string
}

// Every is due at the multiples of an interval.
func Every(interval time.Duration) Schedule { return Schedule{every: interval} }

// tags are short for cron expressions.
var tags = []string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}

// Cron parses a cron expression of five fields (minute, hour, day of the month, month,
// day of the week), or one of @hourly, @daily, @weekly, @monthly and @yearly.
func Cron(expression string) (Schedule, error) {
	expression = strings.TrimSpace(expression)
	tag := strings.HasPrefix(expression, "@")
	if tag && !slices.Contains(tags, expression) {
		return Schedule{}, errors.New("expected one of " + strings.Join(tags, ", "))
	}
	if !tag && len(strings.Fields(expression)) != 5 || !gronx.IsValid(expression) {
		return Schedule{}, errors.New("expected a cron expression of five fields, such as 0 3 * * *")
	}
	s := Schedule{cron: expression}
	if s.Next(time.Now()).IsZero() {
		return Schedule{}, errors.New("expected a cron expression that is due some time")
	}
	return s, nil
}

// String returns the interval or the expression; "" for never.
func (s Schedule) String() string {
	if s.every > 0 {
		return s.every.String()
	}
	return s.cron
}

// Next returns when it is due for the first time after a time, in the time zone of that
// for cron expressions; zero: never.
func (s Schedule) Next(after time.Time) time.Time {
	switch {
	case s.every > 0:
		return after.Truncate(s.every).Add(s.every)
	case s.cron != "":
		next, err := gronx.NextTickAfter(s.cron, after, false)
		if err != nil {
			return time.Time{}
		}
		return next
	default:
		return time.Time{}
	}
}
