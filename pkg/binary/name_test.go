package binary_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"belfry/pkg/binary"
)

func TestNamesAreSanitized(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for given, want := range map[string]string{
		"":                           "",
		"photo.png":                  "photo.png",
		"Żółw & <b>.png":             "Żółw & <b>.png",
		"../../../etc/passwd":        "passwd",
		`..\..\windows\system32.dll`: "system32.dll",
		"/":                          "",
		"..":                         "",
		" . ":                        "",
		"...":                        "",
		"a/..":                       "",
		"a\x00b\r\nc\td":             "abcd",
		"evil\u202egnp.exe":          "evilgnp.exe",
		"\u2066a\u2069\u200f.png":    "a.png",
		"a\u2028b":                   "ab",
		"\xff\xfe.png":               "\uFFFD.png",
		"👩\u200d👧.png":               "👩\u200d👧.png",
		long + ".png":                strings.Repeat("x", binary.MaxName-4) + ".png",
		long:                         strings.Repeat("x", binary.MaxName),
		strings.Repeat("ż", 300):     strings.Repeat("ż", 127),
		"." + long:                   "." + strings.Repeat("x", binary.MaxName-1),
	} {
		got := binary.CleanName(given)
		if got != want || len(got) > binary.MaxName || !utf8.ValidString(got) {
			t.Errorf("%.40q becomes %.40q, want %.40q", given, got, want)
		}
	}
}

func TestTypesAreNormalized(t *testing.T) {
	for given, want := range map[string]string{
		"":                         "application/octet-stream",
		"image/png":                "image/png",
		"Text/HTML; Charset=UTF-8": "text/html; charset=UTF-8",
		"image":                    "application/octet-stream",
		"image/png, text/html":     "application/octet-stream",
		"text/html\r\nX-Evil: 1":   "application/octet-stream",
		"text/plain; a=" + strings.Repeat("x", 300): "application/octet-stream",
		`text/plain; name="a\"b"`:                   `text/plain; name="a\"b"`,
		"image/svg+xml":                             "image/svg+xml",
	} {
		if got := binary.CleanType(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func FuzzCleanName(f *testing.F) {
	for _, name := range []string{"a.png", "../x", "\u202e", "\xff/", strings.Repeat("ż", 200),
		strings.Repeat("x", 254) + " y"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := binary.CleanName(name)
		if len(got) > binary.MaxName || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\\x00\r\n") ||
			got == "." || got == ".." {
			t.Errorf("%q becomes %q", name, got)
		}
		if again := binary.CleanName(got); again != got {
			t.Errorf("%q becomes %q, and that %q", name, got, again)
		}
	})
}
