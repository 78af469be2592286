package mediatype

import (
	"bytes"
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
// The content decides, but for what it can't tell: a text that looks like no other type, as Markdown, is what it is
// declared to be, if that is text; a page of HTML, or XML, is never plain text. A film that is declared to be a
// recording of sound in the same container is one.
func Judge(start []byte, declared string, ranges []string) (media string, ok bool) {
	found := detect(start[:min(len(start), Start)])
	if said, _, err := mime.ParseMediaType(declared); err == nil {
		said = Registered(said)
		text := isText(found) && strings.HasPrefix(said, "text/") && !isMarkup(said)
		sound := kindOf(said) == "audio" && filmOf(said) == name(found)
		if (text || sound) && inRanges(said, ranges) {
			return declared, true
		}
	}
	kind := kindOf(name(found))
	for m := found; m != nil; m = m.Parent() {
		switch of := name(m); {
		case m != found && (kindOf(of) != kind || of == plain && isMarkup(name(found)) || m.Parent() == nil):
		case inRanges(of, ranges):
			if said, _, err := mime.ParseMediaType(declared); err == nil && canonical(said) == name(found) {
				return declared, true
			}
			return withCharset(found), true
		}
	}
	return name(found), false
}

// Overlap reports whether a file can be of both of two ranges.
func Overlap(a, b string) bool {
	if kindOf(a) != kindOf(b) {
		return false
	}
	all := kindOf(a) == "text" || strings.HasSuffix(a, "/*") || strings.HasSuffix(b, "/*")
	return all || within(a, b) || within(b, a)
}

// within reports whether a type is another one, or a more specific one.
func within(media, of string) bool {
	if canonical(media) == canonical(of) {
		return true
	}
	for m := mimetype.Lookup(media); m != nil; m = m.Parent() {
		if name(m) == canonical(of) {
			return true
		}
	}
	return false
}

// Known reports whether Judge recognizes files of a range.
func Known(of string) bool {
	kind, sub, _ := strings.Cut(of, "/")
	if kind == "text" {
		return true
	}
	if sub != "*" {
		return isDetected(canonical(of))
	}
	switch kind {
	case "image", "audio", "video", "font", "application", "model":
		return true
	}
	return false
}

// detect returns the type of a file. A mark of the order of bytes does not hide that it is markup.
func detect(start []byte) *mimetype.MIME {
	found := mimetype.Detect(start)
	if rest, marked := bytes.CutPrefix(start, []byte("\xef\xbb\xbf")); marked {
		if markup := mimetype.Detect(rest); isMarkup(name(markup)) {
			return markup
		}
	}
	return found
}

// canonical returns the one name of a type that Judge finds, of all its names.
func canonical(media string) string {
	for _, known := range []string{Registered(media), media} {
		if m := mimetype.Lookup(known); m != nil {
			return name(m)
		}
	}
	return Registered(media)
}

// isDetected reports whether Judge finds a type, by its canonical name.
func isDetected(media string) bool {
	if mimetype.Lookup(media) != nil {
		return true
	}
	for alias, of := range registered { // the library has another name for it
		if of == media && mimetype.Lookup(alias) != nil {
			return true
		}
	}
	return false
}

// filmOf returns the type of the films in the container of a recording of sound, which begin alike.
func filmOf(sound string) string {
	if sound == "audio/mp4" {
		return "video/mp4"
	}
	return canonical(sound)
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
		if canonical(r) == canonical(media) || strings.HasSuffix(r, "/*") && kindOf(r) == kindOf(media) {
			return true
		}
	}
	return false
}
