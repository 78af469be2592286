package e2e

import (
	"fmt"
	"net/url"
	"os/user"
	"regexp"
	"strings"
)

// masks replace what differs from run to run. What appears where the order is that of the script gets a number, so that
// it is seen to be the same when it appears again.
type masks struct {
	given  string            // what is never masked: the script, whose choices stay readable, and longWords
	known  []string          // the folder, ports and the like, each with its mask
	codes  map[string]bool   // of six digits
	seen   map[string]string // by what is masked: its mask with a number
	counts map[string]int    // by kind
}

// longWords are words that could be ids.
const longWords = " X-Content-Type-Options includeIndicatorStyles"

func newMasks(folder, script string) masks {
	m := masks{given: script + longWords, known: []string{folder, "$WORK"}, codes: map[string]bool{},
		seen: map[string]string{}, counts: map[string]int{}}
	if u, err := user.Current(); err == nil {
		m.known = append(m.known, "("+u.Username+")", "(<system user>)") // of who runs a command
	}
	return m
}

// ports masks the ports of URLs.
func (m *masks) ports(urls ...string) {
	for _, u := range urls {
		if parsed, err := url.Parse(u); err == nil && parsed.Port() != "" {
			m.known = append(m.known, ":"+parsed.Port(), ":<port>", "%3A"+parsed.Port(), "%3A<port>")
		}
	}
}

var code = regexp.MustCompile(`\b\d{6}\b`)

// codesOf masks the codes in texts.
func (m *masks) codesOf(texts ...string) {
	for _, text := range texts {
		for _, found := range code.FindAllString(text, -1) {
			m.codes[found] = true
		}
	}
}

// mask masks a text. Without number, only what has one already gets one.
func (m *masks) mask(text string, number bool) string {
	text = strings.NewReplacer(m.known...).Replace(text)
	for _, r := range alike {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	for _, r := range distinct {
		text = r.pattern.ReplaceAllStringFunc(text,
			func(found string) string { return m.number(r.kind, found, number) })
	}
	return randomText.ReplaceAllStringFunc(text, func(found string) string { return m.random(found, number) })
}

// alike are masks that are the same for every value, in this order.
var alike = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), `<time>`},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d`), `<time to the second>`},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d`), `<time to the minute>`},
	{regexp.MustCompile(`(Retry-After: |"expires_in":)\d+`), `$1<seconds>`},
	{regexp.MustCompile(`("_step": )\d+`), `$1<number>`}, // of the half minute of a code
	{regexp.MustCompile(`(\$argon2id\$v=\d+\$[a-z0-9=,]+)\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+`), `$1$$<salt>$$<hash>`},
	{regexp.MustCompile(`(data:image/png;base64,)[A-Za-z0-9+/=]+`), `$1<image>`},
	{regexp.MustCompile(`("\d{16}-)[A-Za-z0-9_-]{16}"`), `$1<etag>"`},
	{regexp.MustCompile(`\bevents\.\d+\.`), `events.*.`}, // the partition is that of a uuid
}

// distinct are masks with numbers.
var distinct = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{"uuid", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"request", regexp.MustCompile(`\b[0-9a-f]{32}\b`)},
	{"hash", regexp.MustCompile(`\b[0-9a-f]{64}\b`)},
	{"secret of an app", regexp.MustCompile(`\b[A-Z2-7]{32}\b`)},
	{"recovery code", regexp.MustCompile(`\b[A-Z2-7]{4}(-[A-Z2-7]{4}){3}\b`)},
	{revision, regexp.MustCompile(`\b1[789]\d{14}\b`)}, // microseconds until 2033
	{"code", code},
}

// revision is the kind of revisions. They have no numbers without an order: an announcement may be of one that another
// write replaces.
const revision = "revision"

// number masks what is found.
func (m *masks) number(kind, found string, number bool) string {
	mask := m.seen[found]
	switch {
	case kind == "code" && !m.codes[found], strings.Contains(m.given, found):
		return found
	case !number && (mask == "" || kind == revision):
		return "<" + kind + ">"
	case mask == "":
		m.counts[kind]++
		mask = fmt.Sprintf("<%s %d>", kind, m.counts[kind])
		m.seen[found] = mask
	}
	return mask
}

var (
	randomText = regexp.MustCompile(`%[0-9A-F]{2}|[A-Za-z0-9_-]{22,}`)
	words      = regexp.MustCompile(`^[a-z-]+$`)
	sealedText = regexp.MustCompile(`^A[Q-Za-f][A-Za-z0-9_-]{53,}$`) // its first byte is the format
)

// secretSize is how many characters of a token are its secret.
const secretSize = 43

// random masks the id of a session or a key, a token, which begins with one, and other random texts.
func (m *masks) random(found string, number bool) string {
	switch {
	case words.MatchString(found) || found[0] == '%':
		return found
	case len(found) == sessionID:
		return m.number("id", found, number)
	case len(found) == secretSize:
		return m.number("secret", found, number)
	case len(found) == sessionID+secretSize || len(found) > sessionID && m.seen[found[:sessionID]] != "":
		return m.number("id", found[:sessionID], number) + m.random(found[sessionID:], number)
	case len(found) > secretSize && m.seen[found[:secretSize]] != "": // with something that the script appends
		return m.seen[found[:secretSize]] + found[secretSize:]
	case sealedText.MatchString(found):
		return m.number("sealed", found, number)
	}
	return found
}
