package api

import (
	"mime"
	"strings"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
)

const octetStream = "application/octet-stream"

// filePolicy is the Content-Security-Policy of a file: shown by itself it has
// an origin of its own, runs nothing and loads nothing but itself.
const filePolicy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"

// shown are the types that a browser may show by itself. None of them can hold
// what it would run; of all others it is asked to make a file.
var shown = map[string]bool{
	"text/plain": true,
	"image/png":  true, "image/apng": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
	"image/avif": true, "image/bmp": true, "image/x-icon": true, "image/vnd.microsoft.icon": true,
	"audio/mpeg": true, "audio/mp4": true, "audio/aac": true, "audio/ogg": true, "audio/opus": true,
	"audio/flac": true, "audio/x-flac": true, "audio/wav": true, "audio/x-wav": true, "audio/wave": true, "audio/webm": true,
	"video/mp4": true, "video/webm": true, "video/ogg": true, "video/quicktime": true,
}

// loaded are parts of the names of types that a page loads as its own code or
// style, whatever the other headers say.
var loaded = []string{"javascript", "ecmascript", "jscript", "livescript", "vbscript", "text/css"}

// mediaType brings the type that somebody gives a file into its normal form.
// A file without one is a sequence of bytes.
func mediaType(given string) (string, error) {
	if given == "" {
		return octetStream, nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err != nil || !strings.Contains(media, "/") || strings.Contains(media, "*") {
		return "", malformedType()
	}
	formatted := mime.FormatMediaType(media, params)
	if formatted == "" || len(formatted) > binary.MaxMimetype {
		return "", malformedType()
	}
	return formatted, nil
}

func malformedType() error {
	return errs.New(errs.Unsupported,
		"Content-Type is malformed or longer than %d bytes: send the file's media type, such as image/png", binary.MaxMimetype)
}

// servedType says how a file of a type is sent so that nothing in it ever runs
// in the origin of the page that asked: under which type, and whether a
// browser may show it by itself.
func servedType(stored string) (media string, inline bool) {
	stored, err := mediaType(stored)
	if err != nil {
		return octetStream, false
	}
	media, _, _ = strings.Cut(stored, ";")
	for _, code := range loaded {
		if strings.Contains(media, code) {
			return octetStream, false
		}
	}
	return stored, shown[media]
}
