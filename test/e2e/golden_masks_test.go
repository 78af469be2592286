package e2e

import (
	"fmt"
	"net/url"
	"os/user"
	"regexp"
	"strings"
)

// masks replace what differs from run to run. What appears where the order is that of the script gets a number, so that it is
// seen to be the same when it appears again.
type masks struct {
	given  string            // the script: what it chose stays readable
	known  []string          // ports and the like, and their masks
	codes  map[string]bool   // of six digits
	seen   map[string]string // by what is masked: its mask with a number
	counts map[string]int    // by kind
}

func newMasks(folder, script string) masks {
	m := masks{given: script + " X-Content-Type-Options", known: []string{folder, "$WORK"}, codes: map[string]bool{}, seen: map[string]string{}, counts: map[string]int{}}
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

// codesOf masks the codes in texts.
func (m *masks) codesOf(texts ...string) {
	for _, text := range texts {
		for _, code := range sixDigits.FindAllString(text, -1) {
			m.codes[code] = true
		}
	}
}

var (
	sixDigits = regexp.MustCompile(`\b\d{6}\b`)
	digit     = regexp.MustCompile(`\d`)
)

// mask masks a text. Without number, only what has one already gets one.
func (m *masks) mask(text string, number bool) string {
	text = strings.NewReplacer(m.known...).Replace(text)
	for _, r := range rules {
		text = r.pattern.ReplaceAllStringFunc(text, func(found string) string { return r.mask(m, found, number) })
	}
	return text
}

// rules are applied in this order.
var rules = []struct {
	pattern *regexp.Regexp
	mask    func(m *masks, found string, number bool) string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), numbered("uuid")},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), numbered("request")},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), numbered("hash")},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`), always("<time>")},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?`), func(_ *masks, found string, _ bool) string { return digit.ReplaceAllString(found, "0") }},
	{regexp.MustCompile(`\$argon2id\$[A-Za-z0-9+/=,$]+`), always("<hash of a password>")},
	{regexp.MustCompile(`data:image/png;base64,[A-Za-z0-9+/=]+`), always("<image>")},
	{regexp.MustCompile(`\b[A-Z2-7]{32}\b`), numbered("secret of an app")},
	{regexp.MustCompile(`\b[A-Z2-7]{4}(-[A-Z2-7]{4}){3}\b`), numbered("recovery code")},
	{sixDigits, code},
	{regexp.MustCompile(`"_step": ?\d+`), always(`"_step": <step>`)}, // of thirty seconds
	{regexp.MustCompile(`\b1[78]\d{14}\b`), revision},
	{regexp.MustCompile(`Retry-After: \d+`), always("Retry-After: <seconds>")},
	{regexp.MustCompile(`"expires_in":\d+`), always(`"expires_in":<seconds>`)},
	{regexp.MustCompile(`(<revision[ 0-9]*>)-[A-Za-z0-9_-]{16}"`), etag},
	{regexp.MustCompile(`\bevents\.\d+\.`), always("events.*.")}, // the partition is that of a uuid
	{regexp.MustCompile(`%[0-9A-F]{2}|[A-Za-z0-9_-]{22,}`), random},
}

func always(mask string) func(*masks, string, bool) string {
	return func(*masks, string, bool) string { return mask }
}

// secretSize is how many characters a token has besides the id.
const secretSize = 43

func numbered(kind string) func(*masks, string, bool) string {
	return func(m *masks, found string, number bool) string { return m.number(kind, found, number) }
}

func (m *masks) number(kind, found string, number bool) string {
	mask := m.seen[found]
	switch {
	case mask != "":
		return mask
	case strings.Contains(m.given, found):
		return found
	case !number:
		return "<" + kind + ">"
	}
	m.counts[kind]++
	m.seen[found] = fmt.Sprintf("<%s %d>", kind, m.counts[kind])
	return m.seen[found]
}

func code(m *masks, found string, number bool) string {
	if !m.codes[found] {
		return found
	}
	return m.number("code", found, number)
}

// revision masks a revision. An announcement may be of a revision that another write replaces, so those at the end have no
// numbers.
func revision(m *masks, found string, number bool) string {
	if !number {
		return "<revision>"
	}
	return m.number("revision", found, number)
}

func etag(_ *masks, found string, _ bool) string {
	return found[:strings.IndexByte(found, '>')+1] + `-<etag>"`
}

var (
	words    = regexp.MustCompile(`^[a-z-]+$`)
	isSealed = regexp.MustCompile(`^A[Q-Za-f][A-Za-z0-9_-]{53,}$`) // its first byte is the format
)

// random masks the id of a session or a key, its token, and other random texts.
func random(m *masks, found string, number bool) string {
	switch {
	case words.MatchString(found) || found[0] == '%':
		return found
	case len(found) == sessionID:
		return m.number("id", found, number)
	case len(found) == secretSize:
		return m.number("secret", found, number)
	case len(found) == sessionID+secretSize || len(found) > sessionID && m.seen[found[:sessionID]] != "":
		return m.number("id", found[:sessionID], number) + random(m, found[sessionID:], number)
	case len(found) > secretSize && m.seen[found[:secretSize]] != "": // and something that the script appends
		return m.seen[found[:secretSize]] + found[secretSize:]
	case isSealed.MatchString(found):
		return m.number("sealed", found, number)
	}
	return found
}
