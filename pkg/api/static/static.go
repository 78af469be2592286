// Package static serves a front end from a folder: the output of the build tool of an application for browsers. Routes
// of the API take precedence; the folder is searched for all other paths.
//
// The folder is opened for each request, so a deployment can replace it, also by a symbolic link to the next release.
// Nothing outside of it is served, not even by links ([os.Root]). Files and folders whose names begin with a dot are
// not served either, not even by a link, nor lists of folders. The one exception is the folder .well-known.
package static

import (
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// indexFile is the page of a folder and, of a single-page application, of every navigation.
const indexFile = "index.html"

// Values of Cache-Control: of files whose name changes with their content, and of others.
const (
	forever    = "public, max-age=31536000, immutable"
	revalidate = "no-cache"
)

// Options are the options of Mount.
type Options struct {
	Folder    string
	SPA       bool     // the reply to navigations without a file is index.html
	Immutable []string // folders whose files never change, relative to Folder
	Reserved  []string // paths of others: neither these paths nor those below them are looked up in the folder
}

type handler struct {
	o    Options
	tags *tags
}

// Mount serves the folder for all paths without a route.
func Mount(r *httpkit.Router, o Options) {
	h := &handler{o: o, tags: newTags()}
	h.o.Immutable, h.o.Reserved = slices.Clone(o.Immutable), slices.Clone(o.Reserved)
	r.HandleUnmatched(h.serve)
}

func (h *handler) serve(x *httpkit.Exchange) error {
	name, ok := h.nameOf(x.Request.URL.Path)
	if !ok {
		return httpkit.ErrNoRoute()
	}
	root, err := os.OpenRoot(h.o.Folder)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the folder of the front end can't be opened")
	}
	defer root.Close()
	real, info, err := find(root, name)
	switch {
	case err == nil && info.Mode().IsRegular() && !strings.HasSuffix(x.Request.URL.Path, "/"):
		return h.file(x, root, name, real)
	case err == nil && info.IsDir():
		return h.folder(x, root, name)
	default:
		return h.missing(x, root, name)
	}
}

// nameOf returns the name of a path's file, relative to the folder. It is "" for paths of others, for paths that are
// not clean, and for paths with hidden names.
func (h *handler) nameOf(p string) (name string, ok bool) {
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\x00\\") {
		return "", false
	}
	if clean := path.Clean(p); p != clean && p != clean+"/" {
		return "", false
	}
	for _, reserved := range h.o.Reserved {
		if p == reserved || strings.HasPrefix(p, reserved+"/") {
			return "", false
		}
	}
	name = strings.Trim(p, "/")
	if name == "" {
		name = "."
	}
	return name, fs.ValidPath(name) && !hidden(name)
}

// folder replies with the page of a folder.
func (h *handler) folder(x *httpkit.Exchange, root *os.Root, name string) error {
	page := path.Join(name, indexFile)
	real, info, err := find(root, page)
	if err != nil || !info.Mode().IsRegular() {
		return h.missing(x, root, name)
	}
	if p := x.Request.URL.Path; !strings.HasSuffix(p, "/") || x.LacksSlash() {
		// Relative links of the page are relative to the folder. The path begins with one
		// slash, so this is a path on this host.
		x.SetHeader("Location", (&urlPath{strings.TrimSuffix(p, "/") + "/", x.Request.URL.RawQuery}).String())
		x.SetHeader("Cache-Control", revalidate)
		x.WriteHeader(http.StatusPermanentRedirect)
		return nil
	}
	return h.file(x, root, page, real)
}

// missing replies to a path without a file. A navigation of a single-page application gets its page, which has routes
// of its own.
func (h *handler) missing(x *httpkit.Exchange, root *os.Root, name string) error {
	known := strings.HasPrefix(name+"/", wellKnown+"/") // a program that checks for a file must not get the application
	if !h.o.SPA || known || !navigates(x.Request) {
		return httpkit.ErrNoRoute()
	}
	real, info, err := find(root, indexFile)
	if err != nil || !info.Mode().IsRegular() {
		return errs.New(errs.Unavailable,
			"the folder of the front end has no index.html: it is being replaced, or was never built")
	}
	return h.file(x, root, indexFile, real)
}

// assets are the extensions of files that pages load. A missing one is 404: a browser would treat a page in its place
// as a script.
var assets = []string{
	"js", "mjs", "cjs", "css", "map", "json", "wasm", "webmanifest", "xml", "txt", "pdf", "zip", "gz", "br",
	"png", "jpg", "jpeg", "gif", "svg", "webp", "avif", "ico", "woff", "woff2", "ttf", "otf", "eot", "mp3", "mp4",
	"webm", "ogg",
}

// navigates reports whether a browser opens a page. Sec-Fetch-Mode decides, or without it the Accept header.
func navigates(r *http.Request) bool {
	ending := strings.ToLower(strings.TrimPrefix(path.Ext(r.URL.Path), "."))
	if slices.Contains(assets, ending) {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// contentType returns the media type of a file by its name alone: what it contains is not
// guessed.
func contentType(name string) string {
	if name == wellKnown+"/apple-app-site-association" {
		return "application/json" // as Apple requires for a file without an extension
	}
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".js", ".mjs", ".cjs":
		return "text/javascript; charset=utf-8"
	case ".html", ".htm":
		return "text/html; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".wasm":
		return "application/wasm"
	case ".svg":
		return "image/svg+xml"
	case ".woff2":
		return "font/woff2"
	case ".ico":
		return "image/x-icon"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		if known := mime.TypeByExtension(ext); known != "" {
			return known
		}
		return "application/octet-stream"
	}
}
