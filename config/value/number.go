package value

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"belfry/internal/schedule"
)

// numberIn accepts a whole number within bounds.
func numberIn(low, high int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("expected a whole number from %d to %d", low, high)
		}
		return n, nil
	}
}

// Day is that of durations.
const Day = 24 * time.Hour

// maxDays keeps a number of days within the range of time.Duration.
const maxDays = 36500

var days = regexp.MustCompile(`^(\d{1,6})d(.*)$`)

// durationIn accepts Go's syntax, which may begin with a number of days, within
// bounds; described is the range in words.
func durationIn(low, high time.Duration, described string) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		whole, rest := time.Duration(0), text
		if m := days.FindStringSubmatch(text); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil || n > maxDays {
				return 0, fmt.Errorf("expected a duration of at most %dd", maxDays)
			}
			whole, rest = time.Duration(n)*24*time.Hour, m[2]
			if rest == "" {
				rest = "0s"
			}
		}
		part, err := time.ParseDuration(rest)
		if err != nil {
			return 0, errors.New("expected a duration with its unit, such as 250ms, 30s, 12h or 7d")
		}
		if d := whole + part; d >= low && d <= high {
			return d, nil
		}
		return 0, fmt.Errorf("expected a duration %s", described)
	}
}

var (
	sizeSyntax = regexp.MustCompile(`^(?i)(\d{1,19}) ?([KMGT]i?B|B|)$`)
	sizeUnits  = map[string]int64{
		"": 1, "B": 1,
		"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	}
)

// sizeIn accepts a number of bytes, or of a unit, from 1 byte to high.
func sizeIn(high int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		m := sizeSyntax.FindStringSubmatch(text)
		if m == nil {
			return 0, errors.New("expected a size such as 256KiB, 10MiB, 10MB or a number of bytes")
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		unit := sizeUnits[strings.ToUpper(m[2])]
		if err != nil || n < 1 || n > high/unit {
			return 0, fmt.Errorf("expected a size from 1 byte to %s", ShowSize(high))
		}
		return n * unit, nil
	}
}

// ShowSize writes a number of bytes with the largest unit that it is a multiple of.
func ShowSize(n int64) string {
	units := [...]string{"TiB", "GiB", "MiB", "KiB"}
	for i, unit := range units {
		if size := int64(1) << (10 * (len(units) - i)); n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// durationBetween accepts a duration between two bounds; without the second up to the longest there is.
func durationBetween(bounds []string) func(string) (time.Duration, error) {
	all := durationIn(0, maxDays*Day, "")
	low, err := all(bounds[0])
	high, described := maxDays*Day, "of at least "+bounds[0]
	if low == 0 {
		described = "from 0s"
	}
	if len(bounds) > 1 {
		var badHigh error
		high, badHigh = all(bounds[1])
		err = errors.Join(err, badHigh)
		described = "from " + bounds[0] + " to " + bounds[1]
	}
	if err != nil {
		panic(err)
	}
	return durationIn(low, high, described)
}

// sizeOrNone accepts a size of at least low, or 0.
func sizeOrNone(low, high int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		if text == "0" {
			return 0, nil
		}
		n, err := sizeIn(high)(text)
		switch {
		case err != nil:
			return 0, fmt.Errorf("%w, or 0 for no limit", err)
		case n < low:
			return 0, fmt.Errorf("expected a size from %s, or 0 for no limit", ShowSize(low))
		}
		return n, nil
	}
}

func mustSize(text string) int64 {
	n, err := sizeIn(1 << 60)(text)
	if err != nil {
		panic(err)
	}
	return n
}

func mustNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func parseCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 10_000 {
		return 0, errors.New("expected a number from 0 to 10000")
	}
	return n, nil
}

func parseRatio(text string) (float64, error) {
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, errors.New("expected a number from 0 to 1")
	}
	return ratio, nil
}

// parsePresign accepts 0 and the range that S3 allows.
func parsePresign(text string) (time.Duration, error) {
	const described = "of 0s (none), or from 1s to 7d"
	if d, err := durationIn(0, 0, described)(text); err == nil {
		return d, nil
	}
	return durationIn(time.Second, 7*Day, described)(text)
}

func parseSchedule(text string) (schedule.Schedule, error) {
	if strings.HasPrefix(text, "@") || strings.Contains(strings.TrimSpace(text), " ") {
		return schedule.Cron(text)
	}
	every, err := durationIn(time.Minute, 365*Day, "from 1m to 365d, or a cron expression")(text)
	if err != nil {
		return schedule.Schedule{}, fmt.Errorf("%w, or a cron expression such as 0 3 * * *", err)
	}
	return schedule.Every(every), nil
}

// ShowDuration writes a duration without the parts that are 0.
func ShowDuration(d time.Duration) string {
	if d >= Day && d%Day == 0 {
		return strconv.Itoa(int(d/Day)) + "d"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
