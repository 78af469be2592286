package api

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
)

// maxTags bounds the entity tags of one header.
const maxTags = 64

// tags is a parsed If-Match or If-None-Match.
type tags struct {
	given bool
	any   bool // "*"
	list  []tag
}

type tag struct {
	weak  bool
	value string // between the quotes
}

// etag is the entity tag of a revision.
func etag(revision uint64) string {
	var buf [22]byte
	return string(append(strconv.AppendUint(append(buf[:0], '"'), revision, 10), '"'))
}

// parseTags reads the lines of a header that holds entity tags (RFC 9110,
// 13.1). A malformed one is Invalid: to guess at a precondition could lose a
// change.
func parseTags(name string, lines []string) (tags, error) {
	t := tags{given: len(lines) > 0}
	for _, line := range lines {
		rest := strings.Trim(line, " \t,")
		for rest != "" {
			if rest[0] == '*' {
				t.any = true
				rest = rest[1:]
			} else {
				var one tag
				var ok bool
				if one, rest, ok = cutTag(rest); !ok {
					return tags{}, malformedTags(name)
				}
				t.list = append(t.list, one)
			}
			rest = strings.TrimLeft(rest, " \t")
			if rest != "" && rest[0] != ',' {
				return tags{}, malformedTags(name)
			}
			rest = strings.TrimLeft(rest, " \t,")
		}
	}
	if len(t.list) > maxTags {
		return tags{}, errs.New(errs.Invalid, "%s: at most %d entity tags are taken", name, maxTags)
	}
	if t.given && t.any == (len(t.list) > 0) {
		return tags{}, malformedTags(name)
	}
	return t, nil
}

func malformedTags(name string) error {
	return errs.New(errs.Invalid, `%s is malformed: entity tags such as "17", or * alone, are expected`, name)
}

// cutTag cuts an entity tag off the beginning of s.
func cutTag(s string) (t tag, rest string, ok bool) {
	if strings.HasPrefix(s, "W/") {
		t.weak, s = true, s[2:]
	}
	if s == "" || s[0] != '"' {
		return t, s, false
	}
	end := strings.IndexByte(s[1:], '"') + 1
	if end == 0 {
		return t, s, false
	}
	t.value = s[1:end]
	for i := range len(t.value) {
		if c := t.value[i]; c <= ' ' || c == 0x7f {
			return t, s, false
		}
	}
	return t, s[end+1:], true
}

// weakly reports whether the tags of If-None-Match name a revision: a weak tag
// does too.
func (t tags) weakly(revision uint64) bool { return t.has(strconv.FormatUint(revision, 10), true) }

// strongly reports whether the tags of If-Match name a revision.
func (t tags) strongly(revision uint64) bool { return t.has(strconv.FormatUint(revision, 10), false) }

// has reports whether the tags name what has this tag now.
func (t tags) has(current string, weak bool) bool {
	return t.any || slices.ContainsFunc(t.list, func(one tag) bool {
		return one.value == current && (weak || !one.weak)
	})
}

// never is a revision that no object reaches.
const never = math.MaxUint64

// revisions returns those that If-Match names, 0 standing for any. The
// comparison is strong: a weak tag matches nothing, nor does what is no
// revision of ours.
func (t tags) revisions() []uint64 {
	if !t.given || t.any {
		return []uint64{0}
	}
	var all []uint64
	for _, one := range t.list {
		revision, err := strconv.ParseUint(one.value, 10, 64)
		if err == nil && !one.weak && revision != 0 && strconv.FormatUint(revision, 10) == one.value {
			all = append(all, revision)
		}
	}
	if len(all) == 0 {
		// The store still has to say whether there is such an object.
		return []uint64{never}
	}
	return all
}

// attempt makes a write under If-Match: with each revision that it names,
// until the object is at that one.
func (t tags) attempt(write func(ifRevision uint64) error) error {
	for _, revision := range t.revisions() {
		if err := write(revision); !t.given || !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
	return errs.New(errs.Mismatch, "the object is at none of the revisions in If-Match: read it again")
}

// onlyIfAbsent reads If-None-Match on a write: absent, or "*". A list of tags
// is refused, since a precondition must not be overlooked.
func (x *exchange) onlyIfAbsent() (bool, error) {
	lines := x.req.Header["If-None-Match"]
	if len(lines) == 0 {
		return false, nil
	}
	t, err := parseTags("If-None-Match", lines)
	if err == nil && !t.any {
		err = errs.New(errs.Invalid, "If-None-Match takes only * on a write; use If-Match with the revision you read")
	}
	return err == nil, err
}
