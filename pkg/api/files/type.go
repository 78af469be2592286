package files

import (
	"mime"
	"strings"

	"belfry/internal/mediatype"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

const octetStream = "application/octet-stream"

// filePolicy is the Content-Security-Policy of a file: opened as a page it has an
// opaque origin, runs no script and loads nothing but itself.
const filePolicy = "default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; sandbox"

// inlineTypes are the types that a browser may display. None of them can contain
// script; all others are downloaded.
var inlineTypes = map[string]bool{
	"text/plain": true,
	"image/png":  true, "image/apng": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
	"image/avif": true, "image/bmp": true, "image/x-icon": true, "image/vnd.microsoft.icon": true,
	"audio/mpeg": true, "audio/mp4": true, "audio/aac": true, "audio/ogg": true, "audio/opus": true,
	"audio/flac": true, "audio/x-flac": true, "audio/wav": true, "audio/x-wav": true, "audio/wave": true,
	"audio/webm": true, "video/mp4": true, "video/webm": true, "video/ogg": true, "video/quicktime": true,
}

// codeTypes are parts of the names of types that a page can load as script or style,
// regardless of the other headers.
var codeTypes = []string{"javascript", "ecmascript", "jscript", "livescript", "vbscript", "text/css"}

// mediaType normalizes the media type that a client sends with a file; the default is application/octet-stream.
func mediaType(given string) (string, error) {
	if given == "" {
		return octetStream, nil
	}
	media, params, err := httpkit.ParseMediaType(given)
	if err != nil || !strings.Contains(media, "/") || strings.Contains(media, "*") {
		return "", malformedType()
	}
	formatted := mime.FormatMediaType(mediatype.Registered(media), params)
	if formatted == "" || len(formatted) > binary.MaxMimetype {
		return "", malformedType()
	}
	return formatted, nil
}

func malformedType() error {
	return errs.New(errs.Unsupported,
		"Content-Type is malformed or longer than %d bytes: send the file's media type, such as image/png",
		binary.MaxMimetype)
}

// servedType returns the type to send a file with, and whether a browser may display
// it, such that its content never runs as script in the origin of this server.
func servedType(stored string) (media string, inline bool) {
	stored, err := mediaType(stored)
	if err != nil {
		return octetStream, false
	}
	media, _, _ = strings.Cut(stored, ";")
	for _, code := range codeTypes {
		if strings.Contains(media, code) {
			return octetStream, false
		}
	}
	return stored, inlineTypes[media]
}
