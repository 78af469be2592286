package mediatype

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	const (
		png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
		apng = png + "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\x08acTL"
		jpeg = "\xff\xd8\xff\xe0\x00\x10JFIF"
		pdf  = "%PDF-1.7\n"
		zip  = "PK\x03\x04\x14\x00\x00\x00\x08\x00aaaaaaaaaaaaaaaaaaaaaaaaa"
		html = "<!DOCTYPE html><html><script>alert(1)</script>"
		bom  = "\xef\xbb\xbf"
		webm = "\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f\x42\x86\x81\x01\x42\x82\x84webm"
		mp4  = "\x00\x00\x00\x1cftypiso5\x00\x00\x02\x00iso5iso6mp41"
		svg  = `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`
	)
	for name, x := range map[string]struct {
		start, declared, ranges, want string // want "" if the ranges do not have it
	}{
		"a picture":                        {png, "image/png", "image/*", "image/png"},
		"a picture that says less":         {png, "application/octet-stream", "image/*", "image/png"},
		"a picture that lies":              {png, "image/jpeg", "image/*", "image/png"},
		"an alias":                         {jpeg, "image/jpg", "image/jpg", "image/jpg"},
		"no type":                          {jpeg, "", "image/jpeg", "image/jpeg"},
		"a more specific type":             {apng, "image/png", "image/png", "image/apng"},
		"another kind":                     {pdf, "image/png", "image/*", ""},
		"one of several":                   {pdf, "application/pdf", "image/* application/pdf", "application/pdf"},
		"a page that says it is a picture": {html, "image/png", "image/*", ""},
		"a page that says it is a text":    {html, "text/plain", "text/plain", ""},
		"a page among texts":               {html, "text/plain", "text/*", "text/html; charset=utf-8"},
		"a page":                           {html, "text/html; charset=utf-8", "text/html", "text/html; charset=utf-8"},
		"a drawing with scripts, as text":  {svg, "text/plain", "text/*", ""},
		"a drawing is a picture":           {svg, "image/svg+xml", "image/*", "image/svg+xml"},
		"Markdown":                         {"# Soup\n", "text/markdown; charset=utf-8", "text/markdown", "text/markdown; charset=utf-8"},
		"Markdown among texts":             {"# Soup\n", "text/markdown", "text/*", "text/markdown"},
		"a text that says it is a picture": {"# Soup\n", "image/png", "image/*", ""},
		"a text that says it is a page":    {"# Soup\n", "text/html", "text/html", ""},
		"a text without a type":            {"# Soup\n", "", "text/plain", "text/plain; charset=utf-8"},
		"a table":                          {"a,b\n1,2\n3,4\n", "text/plain", "text/csv", "text/csv"},
		"a table as plain text":            {"a,b\n1,2\n3,4\n", "text/csv", "text/plain", "text/csv"},
		"a table that is said to be one":   {"a,b\n1,2\n3,4\n", "text/csv", "text/csv", "text/csv"},
		"JSON":                             {`{"a": 1}`, "text/plain", "application/json", "application/json"},
		"an archive":                       {zip, "application/zip", "application/zip", "application/zip"},
		"bytes":                            {"\x00\x01\x02\x03", "image/png", "image/*", ""},
		"bytes of any type":                {"\x00\x01\x02\x03", "image/png", "application/octet-stream", "application/octet-stream"},
		"a picture is not just bytes":      {png, "image/png", "application/octet-stream", ""},
		"a recording of a browser":         {webm, "audio/webm;codecs=opus", "audio/*", "audio/webm;codecs=opus"},
		"one of another browser":           {mp4, "audio/mp4", "audio/*", "audio/mp4"},
		"a recording of one type":          {mp4, "audio/x-m4a", "audio/mp4", "audio/x-m4a"},
		"a recording by an alias":          {webm, "audio/webm", "audio/webm", "audio/webm"},
		"a film that is no recording":      {webm, "video/webm", "audio/*", ""},
		"a film in another container":      {webm, "audio/mp4", "audio/*", ""},
		"a picture that says it is sound":  {png, "audio/mp4", "audio/*", ""},
		"a film":                           {mp4, "video/mp4", "video/*", "video/mp4"},
		"a drawing with a mark of bytes":   {bom + svg, "image/svg+xml", "image/*", "image/svg+xml"},
		"a page with a mark, as text":      {bom + html, "text/plain", "text/plain", ""},
		"a marked text":                    {bom + "Soup", "text/plain", "text/plain", "text/plain"},
		"a mark before a picture":          {bom + png, "image/png", "image/*", ""},
		"nothing":                          {"", "image/png", "image/*", ""},
		"a picture after many spaces":      {strings.Repeat(" ", Start) + png, "image/png", "image/*", ""},
	} {
		got, ok := Judge([]byte(x.start), x.declared, strings.Fields(x.ranges))
		if !ok {
			got = ""
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

// A range may have any name of a type that a file is judged to have.
func TestRangesHaveAllNamesOfTypes(t *testing.T) {
	for start, names := range map[string]string{
		"\x1aE\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x23\x42\x86\x81\x01\x42\x82\x88matroska": "video/x-matroska video/matroska",
		"RIFF\x24\x00\x00\x00WAVEfmt ":     "audio/wav audio/x-wav audio/wave audio/vnd.wave",
		"RIFF\x24\x00\x00\x00AVI LIST    ": "video/x-msvideo video/avi video/msvideo",
		"<?xml version=\"1.0\"?><a/>":      "text/xml application/xml",
		"Rar!\x1a\x07\x01\x00":             "application/vnd.rar application/x-rar-compressed application/x-rar",
		"{\\rtf1 Soup}":                    "text/rtf application/rtf",
		"MThd\x00\x00\x00\x06":             "audio/midi audio/x-midi audio/mid",
		"SQLite format 3\x00":              "application/vnd.sqlite3 application/x-sqlite3",
		"\x00\x00\x01\x00\x01\x00":         "image/x-icon image/vnd.microsoft.icon image/ico image/x-ico",
		"8BPS\x00\x01":                     "image/vnd.adobe.photoshop image/x-psd",
		"\x1f\x8b\x08\x00":                 "application/gzip application/x-gzip application/x-gzip-compressed application/gzipped",
	} {
		for one := range strings.FieldsSeq(names) {
			if !Known(one) {
				t.Errorf("%s is not known", one)
			}
			for declared := range strings.FieldsSeq(names + " application/octet-stream") {
				got, ok := Judge([]byte(start), declared, []string{one})
				if !ok || got != declared && declared != "application/octet-stream" {
					t.Errorf("%s, declared %s: %s, %t", one, declared, got, ok)
				}
			}
		}
	}
}

func TestOverlap(t *testing.T) {
	for ranges, want := range map[string]bool{"image/* image/png": true, "image/png image/apng": true,
		"image/jpeg image/jpg": true, "application/zip application/vnd.openxmlformats-officedocument.wordprocessingml.document": true,
		"text/plain text/markdown": true, "audio/wav audio/x-wav": true, "image/* image/*": true,
		"image/* text/plain": false, "image/png image/jpeg": false, "application/pdf application/zip": false,
		"audio/* video/*": false} {
		a, b, _ := strings.Cut(ranges, " ")
		if Overlap(a, b) != want || Overlap(b, a) != want {
			t.Errorf("%s: %t", ranges, !want)
		}
	}
}

func TestKnownTypes(t *testing.T) {
	for of, want := range map[string]bool{"image/*": true, "image/jpg": true, "image/avif": true, "application/pdf": true,
		"text/markdown": true, "audio/mp3": true, "image/nonsense": false, "pictures/*": false, "application/x-no": false} {
		if Known(of) != want {
			t.Errorf("%s: %t", of, !want)
		}
	}
}
