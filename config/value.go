package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/object"
)

// The functions of this file parse values. Their errors say what is expected and do
// not repeat the value.

func parseText(text string) (string, error) { return text, nil }

// parseNonEmpty accepts a string that is not empty.
func parseNonEmpty(text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("expected a non-empty string")
	}
	return text, nil
}

// parseLine accepts a value of a mail header, where a line break would start
// another header.
func parseLine(text string) (string, error) {
	if strings.ContainsAny(text, "\r\n") {
		return "", errors.New("expected a single line")
	}
	return text, nil
}

func parseSecret(text string) (Secret, error) { return Secret(text), nil }

func parseFlag(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, expected("true or false", nil)
}

func parseLevel(text string) (slog.Level, error) {
	levels := map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}
	level, ok := levels[text]
	if !ok {
		return 0, expected("debug, info, warn or error", fragment{"enum": []string{"debug", "info", "warn", "error"}})
	}
	return level, nil
}

// oneOf accepts only the choices.
func oneOf(choices ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if slices.Contains(choices, text) {
			return text, nil
		}
		last := len(choices) - 1
		described := choices[last]
		if last > 0 {
			described = strings.Join(choices[:last], ", ") + " or " + described
		}
		return "", expected(described, fragment{"enum": choices})
	}
}

// numberIn accepts a whole number within bounds.
func numberIn(low, high int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < low || n > high {
			return 0, expected(fmt.Sprintf("a whole number from %d to %d", low, high), fragment{"minimum": low, "maximum": high})
		}
		return n, nil
	}
}

// maxDays keeps a number of days within the range of time.Duration.
const maxDays = 36500

// durationSyntax is for the schema: it accepts more than durationIn.
const durationSyntax = `^(\d{1,6}d)?((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))*$|^0$`

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
			return 0, expected("a duration with its unit, such as 250ms, 30s, 12h or 7d", fragment{"pattern": durationSyntax, "minimum": 0, "maximum": 0}) // 0 needs no unit
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
			return 0, expected("a size such as 256KiB, 10MiB, 10MB or a number of bytes", fragment{"pattern": `^\d{1,19} ?([KMGTkmgt][iI]?)?[bB]?$`, "minimum": 0})
		}
		n, err := strconv.ParseInt(m[1], 10, 64)
		unit := sizeUnits[strings.ToUpper(m[2])]
		if err != nil || n < 1 || n > high/unit {
			return 0, fmt.Errorf("expected a size from 1 byte to %s", showSize(high))
		}
		return n * unit, nil
	}
}

func showSize(n int64) string {
	units := [...]string{"TiB", "GiB", "MiB", "KiB"}
	for i, unit := range units {
		if size := int64(1) << (10 * (len(units) - i)); n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// A bounded repetition would be compiled as so many copies, at every start of belfry.
var hostName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// maxHostName is the greatest length of a name in DNS, in bytes.
const maxHostName = 253

// parseAddress accepts what a server can listen on: host:port, where the host may
// be empty (every interface) and the port 0 (any free one).
func parseAddress(text string) (string, error) {
	expected := errors.New("expected host:port, such as 127.0.0.1:8080, or :8080 for every interface")
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", expected
	}
	if host != "" {
		if _, err := parseHost(host); err != nil {
			return "", expected
		}
	}
	if _, err := numberIn(0, math.MaxUint16)(port); err != nil {
		return "", expected
	}
	return text, nil
}

func parseHost(text string) (string, error) {
	if net.ParseIP(text) == nil && (len(text) > maxHostName || !hostName.MatchString(text)) {
		return "", errors.New("expected a host such as smtp.example.com")
	}
	return text, nil
}

// sameAddress reports whether two servers would listen on the same address. Port 0
// is a different port each time.
func sameAddress(a, b string) bool { return a == b && a != "" && !strings.HasSuffix(a, ":0") }

// parseOptionalAddress also accepts "", which disables listening.
func parseOptionalAddress(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	return parseAddress(text)
}

var nameSyntax = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

const maxName = 63

// parseName accepts the name of a store, a backend, a mailer and so on. Names
// become parts of NATS subjects, of URLs and of folders.
func parseName(text string) (string, error) {
	if len(text) > maxName || !nameSyntax.MatchString(text) {
		return "", errors.New("expected a name of 1 to 63 letters, digits, _ and -, beginning with a letter")
	}
	return text, nil
}

// parseProperty accepts the name of a top-level property of an object.
func parseProperty(text string) (string, error) {
	switch {
	case strings.HasPrefix(text, "_"):
		return "", errors.New("expected a property of your own; names that begin with _ are reserved")
	case strings.ContainsRune(text, '.'):
		return "", errors.New("expected the name of a top-level property, without dots")
	case !object.ValidProperty(text):
		return "", errors.New("expected the name of a top-level property: letters, digits, _ and -")
	}
	return text, nil
}

// parseIndexField accepts a property, a property of the object in one (address.city), either in descending order
// (-year), or the elements of an array (tags[]).
func parseIndexField(text string) (string, error) {
	name, descending := strings.CutPrefix(text, "-")
	name, elements := strings.CutSuffix(name, "[]")
	if descending && elements {
		return "", errors.New("expected the elements of an array without a direction: they have no order")
	}
	return text, checkNested(name, parseProperty)
}

// checkNested returns an error for what is neither a property nor one of the object in it.
func checkNested(text string, parse func(string) (string, error)) error {
	name, inner, nested := strings.Cut(text, ".")
	if _, err := parse(name); err != nil {
		return err
	}
	if nested && !object.ValidProperty(inner) {
		return errors.New("expected a property, or one of the object in it such as address.city")
	}
	return nil
}

// topProperty returns the top-level property of a field of an index.
func topProperty(field string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(field, "-"), "[]"), ".")
	return name
}

// parseOwnProperty accepts a property that the server does not set in every object.
func parseOwnProperty(text string) (string, error) {
	switch text {
	case "uuid", "created", "updated":
		return "", errors.New("expected a property of your own; uuid, created and updated are set by the server")
	}
	return parseProperty(text)
}
