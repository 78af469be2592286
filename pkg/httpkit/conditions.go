package httpkit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// maxTags bounds the entity tags of one header.
const maxTags = 64

// Tags is a parsed If-Match or If-None-Match.
type Tags struct {
	Given bool
	any   bool // "*"
	weak  bool // If-Match had weak tags
	list  []tag
}

type tag struct {
	weak  bool
	value string // between the quotes
}

// codings are the content codings whose names proxies append to the tag of a reply that they compress: -gzip (Apache,
// Caddy, lighttpd) or --gzip (Jetty).
var codings = [...]string{"-gzip", "-br", "-zstd", "-deflate"}

// names reports whether a tag is one for which is holds: as it is, or without a proxy's suffix. The
// tags of belfry end in digits, or have a fixed length, so none of them is another one with a coding.
func (t tag) names(is func(value string) bool) bool {
	if is(t.value) {
		return true
	}
	for _, coding := range codings {
		if plain, coded := strings.CutSuffix(t.value, coding); coded {
			jetty, both := strings.CutSuffix(plain, "-")
			return is(plain) || both && is(jetty)
		}
	}
	return false
}

// revision returns the revision that a tag names, of any view; false for any other tag.
func (t tag) revision() (revision uint64, ok bool) {
	t.names(func(value string) bool {
		revision, ok = revisionOf(value)
		return ok
	})
	return revision, ok
}

// viewSize is the length of a view in an entity tag, and viewBytes that of its hash.
const (
	viewBytes = 12
	viewSize  = viewBytes * 4 / 3
)

// ETag returns the entity tag of an object as a client receives it: the revision. Where
// another client or another request may receive something else, a hyphen and a hash of what this one receives
// follow: tags are equal only if the bodies are.
func ETag(o store.Stored) string {
	var buf [1 + 20 + 1 + viewSize + 1]byte
	tag := strconv.AppendUint(append(buf[:0], '"'), o.Revision, 10)
	if o.ByCaller || o.Viewed {
		sum := sha256.Sum256(o.Body)
		tag = base64.RawURLEncoding.AppendEncode(append(tag, '-'), sum[:viewBytes])
	}
	return string(append(tag, '"'))
}

// revisionOf returns the revision of an entity tag of ETag, given without its quotes, of
// any view; false for any other tag.
func revisionOf(tag string) (uint64, bool) {
	digits, view, isView := strings.Cut(tag, "-")
	revision, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || revision == 0 || strconv.FormatUint(revision, 10) != digits || isView && len(view) != viewSize {
		return 0, false
	}
	return revision, true
}

// IfMatch parses the header If-Match of a request. By RFC 9110 no weak tag matches there, so none is kept.
func IfMatch(h http.Header) (Tags, error) {
	t, err := parseTags("If-Match", h["If-Match"])
	kept := slices.DeleteFunc(t.list, func(one tag) bool { return one.weak })
	t.weak, t.list = len(kept) < len(t.list), kept
	return t, err
}

// IfNoneMatch parses the header If-None-Match of a request.
func IfNoneMatch(h http.Header) (Tags, error) { return parseTags("If-None-Match", h["If-None-Match"]) }

// String returns the condition that If-Match is, in one form for each, for comparisons.
func (t Tags) String() string {
	if !t.Given {
		return ""
	}
	return fmt.Sprint(t.any, t.revisions())
}

// parseTags parses the lines of a header that holds entity tags (RFC 9110,
// 13.1). A malformed one is Invalid: guessing at a precondition could lose an
// update.
func parseTags(name string, lines []string) (Tags, error) {
	t := Tags{Given: len(lines) > 0}
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
					return Tags{}, malformedTags(name)
				}
				if len(t.list) == maxTags {
					return Tags{}, errs.New(errs.Invalid, "%s: at most %d entity tags are allowed", name, maxTags)
				}
				t.list = append(t.list, one)
			}
			rest = strings.TrimLeft(rest, " \t")
			if rest != "" && rest[0] != ',' {
				return Tags{}, malformedTags(name)
			}
			rest = strings.TrimLeft(rest, " \t,")
		}
	}
	if t.Given && t.any == (len(t.list) > 0) {
		return Tags{}, malformedTags(name)
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

// Match reports whether the tags name the current one, given without its quotes, or the tag that a compressing proxy
// made of it. Only ranges depend on the bytes that were received: see RangeHolds.
func (t Tags) Match(current string) bool {
	return t.any || slices.ContainsFunc(t.list, func(one tag) bool {
		return one.names(func(value string) bool { return value == current })
	})
}

// MatchObject reports whether one of the tags is of the revision of an object, in any view:
// If-Match asks whether the object has changed.
func (t Tags) MatchObject(o store.Stored) bool {
	return t.any || slices.ContainsFunc(t.list, func(one tag) bool {
		revision, ok := one.revision()
		return ok && revision == o.Revision
	})
}

// MatchView is Match of an object as a client would receive it: If-None-Match asks whether the client has that.
func (t Tags) MatchView(o store.Stored) bool { return t.Match(strings.Trim(ETag(o), `"`)) }

// RangeHolds reports whether If-Range and If-Match, where they are given, let a range of a content apply. Only its own
// tag does, given without its quotes: a weak one, or one with a coding, is of other bytes, to which the range would not
// fit. A date is not a proof either, since it is the same for all codings, and for what replaces the content within its
// second.
func RangeHolds(h http.Header, current string) bool {
	if match, err := IfMatch(h); err != nil || match.Given && !match.exact(current) {
		return false
	}
	lines := h["If-Range"]
	if len(lines) == 0 {
		return true
	}
	one, rest, ok := cutTag(strings.Trim(lines[0], " \t"))
	return len(lines) == 1 && ok && rest == "" && !one.weak && one.value == current
}

// exact is Match by strong comparison, without codings.
func (t Tags) exact(current string) bool {
	return t.any || slices.Contains(t.list, tag{value: current})
}

// ForServeContent adapts a request for http.ServeContent, which does not know how proxies change tags, and takes a date
// in If-Range. If-Match and If-None-Match get the current tag, given without its quotes, if they match it. A range that
// does not hold is removed.
func ForServeContent(r *http.Request, current string) *http.Request {
	header := maps.Clone(r.Header)
	if !RangeHolds(r.Header, current) {
		delete(header, "Range")
	}
	for name, parse := range map[string]func(http.Header) (Tags, error){"If-Match": IfMatch,
		"If-None-Match": IfNoneMatch} {
		if t, err := parse(r.Header); err == nil && t.Given && !t.exact(current) && t.Match(current) {
			header[name] = []string{`"` + current + `"`}
		}
	}
	r = r.WithContext(r.Context())
	r.Header = header
	return r
}

// unreachable is a revision that no object reaches.
const unreachable = math.MaxUint64

// revisions returns the revisions that If-Match names, 0 for any. A tag that is not a revision matches nothing.
func (t Tags) revisions() []uint64 {
	if !t.Given || t.any {
		return []uint64{0}
	}
	var all []uint64
	for _, one := range t.list {
		if revision, ok := one.revision(); ok && !slices.Contains(all, revision) {
			all = append(all, revision)
		}
	}
	if len(all) == 0 {
		// The store still reports whether the object exists.
		return []uint64{unreachable}
	}
	return all
}

// Attempt makes a write under If-Match: with each of its revisions in turn, until
// one does not fail with errs.Mismatch. If all do, the error says where the object is.
func (t Tags) Attempt(write func(ifRevision uint64) error) error {
	var at *errs.Revision
	for _, revision := range t.revisions() {
		err := write(revision)
		if !t.Given || !errors.Is(err, errs.Mismatch) {
			return err
		}
		var e *errs.Error
		if errors.As(err, &e) && e.At != nil && (at == nil || e.At.OnlyWorkers) {
			at = e.At
		}
	}
	return t.mismatchAt(at)
}

// mismatchAt is Mismatch with where the object is.
func (t Tags) mismatchAt(at *errs.Revision) error {
	err := t.Mismatch()
	var e *errs.Error
	if at == nil || t.weak || !errors.As(err, &e) {
		return err
	}
	e.At = at
	if at.OnlyWorkers {
		e.Message = "the object is at none of the revisions in If-Match, but only belfry's workers have written it " +
			"since: the write can be repeated with the revision of this problem"
	}
	return e
}

// Mismatch returns the error of an If-Match that names no revision at which an object is.
func (t Tags) Mismatch() error {
	return t.mismatch("the object is at none of the revisions in If-Match")
}

// FileMismatch returns the error of an If-Match that does not name a file.
func (t Tags) FileMismatch() error { return t.mismatch("the file is not one of those in If-Match") }

func (t Tags) mismatch(what string) error {
	if t.weak {
		return errs.New(errs.Mismatch,
			`%s, where no weak tag matches; if a proxy made it weak (W/"17"), send it without W/`, what)
	}
	return errs.New(errs.Mismatch, "%s: read it again", what)
}

// OnlyIfAbsent reports whether a write has If-None-Match: *. A list of entity tags
// is Invalid, since a precondition must not be ignored.
func OnlyIfAbsent(h http.Header) (bool, error) {
	lines := h["If-None-Match"]
	if len(lines) == 0 {
		return false, nil
	}
	t, err := parseTags("If-None-Match", lines)
	if err == nil && !t.any {
		err = errs.New(errs.Invalid,
			"only * is supported in If-None-Match of a write; use If-Match with the revision you read")
	}
	return err == nil, err
}

// Fixed replies with content that stays the same while the process runs. Everybody may read it, and cache it
// with revalidation.
func Fixed(contentType string, content []byte) Handler {
	sum := sha256.Sum256(content)
	tag := hex.EncodeToString(sum[:16])
	return func(x *Exchange) error {
		match, err := IfNoneMatch(x.Request.Header)
		if err != nil {
			return err
		}
		x.SetHeader("Etag", `"`+tag+`"`)
		x.SetHeader("Cache-Control", "no-cache")
		if match.Given && match.Match(tag) {
			x.WriteHeader(http.StatusNotModified)
			return nil
		}
		x.Send(http.StatusOK, contentType, content)
		return nil
	}
}
