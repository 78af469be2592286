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

func TestKnownTypes(t *testing.T) {
	for of, want := range map[string]bool{"image/*": true, "image/jpg": true, "image/avif": true, "application/pdf": true,
		"text/markdown": true, "audio/mp3": true, "image/nonsense": false, "pictures/*": false, "application/x-no": false} {
		if Known(of) != want {
			t.Errorf("%s: %t", of, !want)
		}
	}
}
