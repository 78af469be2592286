package files_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/pkg/binary/driver"
)

// File names are for display: they are not used as paths, and stay within a
// header's value.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	for given, want := range map[string]string{
		"../../etc/passwd":                "passwd",
		`..\..\boot.ini`:                  "boot.ini",
		"/abs/olute":                      "olute",
		"..":                              "",
		".":                               "",
		"a\x00b.txt":                      "ab.txt",
		"a\r\nSet-Cookie: x=y":            "aSet-Cookie: x=y",
		"\u202egnp.exe":                   "gnp.exe",
		"in\u2066voice\u2069.pdf":         "invoice.pdf",
		"größe €.txt":                     "größe €.txt",
		strings.Repeat("x", 4096):         strings.Repeat("x", 255),
		`"; filename=evil.html; x="`:      `"; filename=evil.html; x="`,
		"<img src=x onerror=1>.html":      "<img src=x onerror=1>.html",
		"%2e%2e%2fx":                      "%2e%2e%2fx",
		strings.Repeat("é", 200) + ".txt": strings.Repeat("é", 125) + ".txt",
	} {
		var escaped strings.Builder
		for i := range len(given) {
			escaped.WriteString("%" + hex.EncodeToString([]byte{given[i]}))
		}
		ways := [][]string{
			{"X-Filename", escaped.String()},
			{"Content-Disposition", "attachment; filename*=UTF-8''" + escaped.String()},
		}
		for _, way := range ways {
			r := l.put("Books/emma/texts/0", "x", way...)
			if r.StatusCode != 200 && r.StatusCode != 201 {
				t.Errorf("%.60q: %d %s", given, r.StatusCode, r.Text)
				continue
			}
			if name := recordOf(r).Name; name != want {
				t.Errorf("%s %.60q: name %q, want %q", way[0], given, name, want)
			}
			got := l.Do("GET", "/files/Books/emma/texts/0", "").Want(200)
			value := got.Header.Get("Content-Disposition")
			if !strings.HasPrefix(value, "attachment") || strings.ContainsAny(value, "\r\n\x00") ||
				len(got.Header["Set-Cookie"]) > 0 {
				t.Errorf("%.60q: %q", given, value)
			}
		}
	}
	// Every file in the folder is a content or a stage.
	l.Must(filepath.WalkDir(l.folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && !driver.ValidHash(entry.Name()) {
			t.Errorf("there is %s", path)
		}
		return err
	}))
}

// No uploaded content runs as script in the origin that serves it.
func TestHostileTypes(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	const script = "<script>alert(1)</script>"
	for mimetype, served := range map[string]string{
		"text/html":                 "text/html",
		"image/svg+xml":             "image/svg+xml",
		"application/xhtml+xml":     "application/xhtml+xml",
		"text/xml":                  "text/xml",
		"application/pdf":           "application/pdf",
		"text/javascript":           "application/octet-stream",
		"application/x-javascript":  "application/octet-stream",
		"text/css":                  "application/octet-stream",
		"multipart/x-mixed-replace": "multipart/x-mixed-replace",
		"image/png":                 "image/png", // a polyglot
		"text/plain":                "text/plain",
	} {
		path, _ := l.add("types", "GIF89a"+script, "Content-Type", mimetype, "X-Filename", "x.html")
		r := l.Do("GET", path, "").Want(200).HasHeader("Content-Type", served).HasHeader("X-Content-Type-Options",
			"nosniff")
		inline := mimetype == "image/png" || mimetype == "text/plain"
		if strings.HasPrefix(r.Header.Get("Content-Disposition"), "inline") != inline {
			t.Errorf("%s: %s", mimetype, r.Header.Get("Content-Disposition"))
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "sandbox") ||
			strings.Contains(csp, "script") {
			t.Errorf("%s: %q", mimetype, csp)
		}
	}
}
