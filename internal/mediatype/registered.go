// Package mediatype names the media types of files.
package mediatype

// registered are the names under which IANA has registered media types that some programs send under others, by these.
// A file of such a type is one of the registered type for all that read it: rules, listeners, browsers.
var registered = map[string]string{
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-jpeg": "image/jpeg", "image/x-jpg": "image/jpeg",
	"image/x-pjpeg": "image/jpeg",
	"image/x-png":   "image/png", "image/x-gif": "image/gif", "image/x-webp": "image/webp",
	"image/x-avif": "image/avif",
	"image/x-bmp":  "image/bmp", "image/x-ms-bmp": "image/bmp", "image/x-windows-bmp": "image/bmp",
	"image/ico": "image/vnd.microsoft.icon", "image/x-icon": "image/vnd.microsoft.icon",
	"image/x-ico": "image/vnd.microsoft.icon",
	"image/tif":   "image/tiff", "image/x-tif": "image/tiff", "image/x-tiff": "image/tiff",

	"audio/mp3": "audio/mpeg", "audio/x-mp3": "audio/mpeg", "audio/mpeg3": "audio/mpeg", "audio/x-mpeg": "audio/mpeg",
	"audio/x-mpeg-3": "audio/mpeg",
	"audio/m4a":      "audio/mp4", "audio/x-m4a": "audio/mp4", "audio/x-mp4": "audio/mp4", "audio/x-aac": "audio/aac",
	"audio/x-ogg": "audio/ogg",
	"video/x-m4v": "video/mp4", "video/x-mp4": "video/mp4", "video/x-ogg": "video/ogg", "video/x-webm": "video/webm",

	"application/x-pdf": "application/pdf", "application/acrobat": "application/pdf", "text/pdf": "application/pdf",
	"text/x-pdf":        "application/pdf",
	"application/x-zip": "application/zip", "application/x-zip-compressed": "application/zip",
	"application/x-gzip": "application/gzip",
	"application/x-json": "application/json", "text/json": "application/json", "text/x-json": "application/json",
	"application/csv": "text/csv", "text/x-csv": "text/csv", "application/x-csv": "text/csv",
	"text/x-markdown":    "text/markdown",
	"application/x-yaml": "application/yaml", "text/yaml": "application/yaml", "text/x-yaml": "application/yaml",
	"application/javascript": "text/javascript", "application/x-javascript": "text/javascript",
	"text/x-javascript": "text/javascript",
}

// Registered returns the registered name of a media type, in lower case and without parameters, that has another
// one; any other type is returned as it is.
func Registered(media string) string {
	if name, ok := registered[media]; ok {
		return name
	}
	return media
}
