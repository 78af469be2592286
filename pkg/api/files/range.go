package files

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"belfry/pkg/httpkit"
)

// span is a part of a content.
type span struct{ start, length int64 }

// unsatisfiable is the error of a range that begins after the end of the content.
type unsatisfiable struct{ size int64 }

func (u unsatisfiable) Error() string {
	return fmt.Sprintf("the range begins after the end: the content has %d bytes", u.size)
}

// Problem returns the problem document of the reply.
func (u unsatisfiable) Problem() httpkit.Problem {
	return httpkit.Problem{
		Type: "range", Title: "Range not satisfiable", Status: http.StatusRequestedRangeNotSatisfiable,
		Detail: u.Error(),
	}
}

// requestedSpan returns the part of a content that a request selects (RFC 9110,
// 14.2), and whether it is partial: a Range that is malformed, in other units, of
// several parts, or for another content is ignored.
func requestedSpan(h http.Header, hash string, size int64) (s span, partial bool, err error) {
	whole := span{0, size}
	lines := h["Range"]
	if len(lines) != 1 || size == 0 {
		return whole, false, nil
	}
	if !httpkit.RangeHolds(h, hash) {
		return whole, false, nil
	}
	unit, set, _ := strings.Cut(lines[0], "=")
	if !strings.EqualFold(unit, "bytes") {
		return whole, false, nil
	}
	first, last, ok := parseRange(strings.Trim(set, " \t,"))
	switch {
	case !ok:
		return whole, false, nil
	case first < 0: // a suffix
		first, last = max(0, size-last), size-1
	default:
		last = min(last, size-1)
	}
	if first >= size {
		return span{}, false, unsatisfiable{size}
	}
	return span{first, last - first + 1}, true, nil
}

// parseRange parses "first-last", "first-" and "-suffix", for which first is -1
// and last the suffix's length.
func parseRange(s string) (first, last int64, ok bool) {
	from, to, ok := strings.Cut(s, "-")
	if !ok || from == "" && to == "" {
		return 0, 0, false
	}
	first, last = -1, math.MaxInt64
	if from != "" {
		if first, ok = position(from); !ok {
			return 0, 0, false
		}
	}
	if to != "" {
		if last, ok = position(to); !ok {
			return 0, 0, false
		}
	}
	return first, last, first <= last
}

// position parses digits; a number that overflows becomes the largest.
func position(s string) (int64, bool) {
	if strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n = math.MaxInt64
	}
	return n, true
}

// contentRange returns the Content-Range of a part.
func (s span) contentRange(size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", s.start, s.start+s.length-1, size)
}
