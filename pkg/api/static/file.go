package static

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// encodings are the precompressed forms of a file, the smallest first.
var encodings = [...]struct{ name, suffix string }{{"br", ".br"}, {"gzip", ".gz"}}

// file replies with a file, in its smallest existing form that the client accepts. real is the name with all links
// resolved.
func (h *handler) file(x *httpkit.Exchange, root *os.Root, name, real string) error {
	x.SetHeader("Content-Type", contentType(name))
	x.SetHeader("Cache-Control", revalidate)
	if h.immutable(name) {
		x.SetHeader("Cache-Control", forever)
	}
	form, encoding, varies := real, "", false
	for _, e := range encodings {
		smaller, info, err := find(root, name+e.suffix)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		varies = true
		if encoding == "" && accepts(x.Request.Header["Accept-Encoding"], e.name) {
			form, encoding = smaller, e.name
		}
	}
	if varies {
		x.Header().Add("Vary", "Accept-Encoding")
	}
	if encoding != "" {
		x.SetHeader("Content-Encoding", encoding)
	}
	f, err := root.Open(form)
	if err != nil {
		return unreadable(x, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return unreadable(x, err)
	}
	tag, err := h.tags.of(f, form, info)
	if err != nil {
		return unreadable(x, err)
	}
	x.SetHeader("Etag", tag)
	http.ServeContent(x, httpkit.ForServeContent(x.Request, strings.Trim(tag, `"`)), name, info.ModTime(), f)
	return nil
}

// unreadable is the error of a file that was found and can't be read: it is being replaced, or belfry may not read it.
func unreadable(x *httpkit.Exchange, err error) error {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Etag", "Last-Modified"} {
		x.Header().Del(name)
	}
	if os.IsPermission(err) {
		return errs.Wrap(err, errs.Internal, "a file of the front end can't be read")
	}
	return errs.Wrap(err, errs.Unavailable, "a file of the front end can't be read at the moment: try again")
}

// immutable reports whether the name of a file changes with its content.
func (h *handler) immutable(name string) bool {
	for _, folder := range h.o.Immutable {
		if strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return hashed(path.Base(name))
}

// hashed reports whether a build tool put a hash of the content into a name, as in index-B2xk91Lm.js or
// main.8f3a1b2c.css. Browsers would keep a file for a year if its name were treated as hashed by mistake, so possible
// words and numbers do not count as hashes.
func hashed(base string) bool {
	stem := strings.TrimSuffix(base, path.Ext(base))
	stem = strings.TrimSuffix(stem, ".chunk")
	stem = strings.TrimSuffix(stem, ".min")
	if i := strings.LastIndexByte(stem, '.'); i > 0 && isHash(stem[i+1:]) {
		return true
	}
	i := strings.LastIndexByte(stem, '-')
	if i > 0 && isHash(stem[i+1:]) {
		return true
	}
	// The alphabet of a hash may have - and _ itself.
	return len(stem) > 9 && stem[len(stem)-9] == '-' && isHash(stem[len(stem)-8:])
}

// isHash reports whether a text is 8 or more hexadecimal digits, with letters and digits
// among them, or exactly 8 characters of base 64 or 32 with a capital and, before another
// letter, a digit.
func isHash(s string) bool {
	if len(s) < 8 {
		return false
	}
	hex, digit, letter, capital, inside := true, false, false, false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit = true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			letter = true
			inside = inside || i > 0 && s[i-1] >= '0' && s[i-1] <= '9'
			capital = capital || c <= 'Z'
			hex = hex && c >= 'a' && c <= 'f'
		case c == '-', c == '_':
			hex = false
		default:
			return false
		}
	}
	return hex && digit && letter || len(s) == 8 && capital && inside
}

// accepts reports whether a client takes an encoding by name.
func accepts(lines []string, encoding string) bool {
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		name, parameters, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		_, weight, given := strings.Cut(strings.ReplaceAll(strings.ToLower(parameters), " ", ""), "q=")
		if !given {
			return true
		}
		q, err := strconv.ParseFloat(weight, 64)
		return err == nil && q > 0
	}
	return false
}

// Limits of entity tags: files up to a size are identified by their content, and so many
// results are kept.
const (
	maxTagged = 8 << 20
	maxTags   = 4096
)

// tags are the entity tags of files. The size and time of a file are not enough: build tools
// and images set the time to a constant, and the next release's page may have the same size.
type tags struct {
	mu    sync.Mutex
	known map[string]tagged
}

type tagged struct {
	info os.FileInfo
	tag  string
}

func newTags() *tags { return &tags{known: map[string]tagged{}} }

// of returns the tag of an open file, which is read at most once for each version of it.
func (t *tags) of(f *os.File, name string, info os.FileInfo) (string, error) {
	if info.Size() > maxTagged {
		return fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()), nil
	}
	t.mu.Lock()
	known := t.known[name]
	t.mu.Unlock()
	if known.tag != "" && os.SameFile(known.info, info) && known.info.Size() == info.Size() &&
		known.info.ModTime().Equal(info.ModTime()) {
		return known.tag, nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	known = tagged{info, `"` + hex.EncodeToString(sum.Sum(nil)[:16]) + `"`}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= maxTags {
		clear(t.known)
	}
	t.known[name] = known
	return known.tag, nil
}

// urlPath is a path and a query of a redirect.
type urlPath struct{ path, query string }

func (u *urlPath) String() string { return (&url.URL{Path: u.path, RawQuery: u.query}).String() }
