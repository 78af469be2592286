package mediatype

import (
	"mime"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// Start is how many bytes of the beginning of a file Judge needs.
const Start = 3072

const plain = "text/plain"

// Judge returns the media type of a file that begins with start, if one of the ranges has it: "image/png", or
// "image/*". A range with a type has the more specific ones of its kind, too: application/zip those of documents in a
// zip.
//
// The content decides. Only a text that looks like no other type, as Markdown, is what it is declared to be, if that is
// text; a page of HTML, or XML, is never plain text.
func Judge(start []byte, declared string, ranges []string) (media string, ok bool) {
	found := mimetype.Detect(start[:min(len(start), Start)])
	if said, _, err := mime.ParseMediaType(declared); err == nil && isText(found) {
		said = Registered(said)
		if strings.HasPrefix(said, "text/") && !isMarkup(said) && inRanges(said, ranges) {
			return declared, true
		}
	}
	kind := kindOf(name(found))
	for m := found; m != nil; m = m.Parent() {
		switch of := name(m); {
		case m != found && (kindOf(of) != kind || of == plain && isMarkup(name(found)) || m.Parent() == nil):
		case inRanges(of, ranges):
			if said, _, err := mime.ParseMediaType(declared); err == nil && Registered(said) == name(found) {
				return declared, true
			}
			return withCharset(found), true
		}
	}
	return name(found), false
}

// Known reports whether Judge recognizes files of a range.
func Known(of string) bool {
	kind, sub, _ := strings.Cut(of, "/")
	if kind == "text" {
		return true
	}
	if sub != "*" {
		return mimetype.Lookup(Registered(of)) != nil || mimetype.Lookup(of) != nil
	}
	switch kind {
	case "image", "audio", "video", "font", "application", "model":
		return true
	}
	return false
}

// name returns the registered name of a type, without parameters.
func name(m *mimetype.MIME) string {
	base, _, _ := strings.Cut(m.String(), ";")
	return Registered(base)
}

func withCharset(m *mimetype.MIME) string {
	if base, params, has := strings.Cut(m.String(), ";"); has {
		return Registered(base) + ";" + params
	}
	return name(m)
}

func kindOf(media string) string {
	kind, _, _ := strings.Cut(media, "/")
	return kind
}

// isText reports whether a file is a text that is no markup.
func isText(m *mimetype.MIME) bool {
	for ; m != nil; m = m.Parent() {
		if isMarkup(name(m)) {
			return false
		}
		if name(m) == plain {
			return true
		}
	}
	return false
}

func isMarkup(media string) bool {
	return media == "text/html" || media == "text/xml" || strings.HasSuffix(media, "+xml")
}

func inRanges(media string, ranges []string) bool {
	for _, r := range ranges {
		if r = Registered(r); r == media || strings.HasSuffix(r, "/*") && kindOf(r) == kindOf(media) {
			return true
		}
	}
	return false
}
