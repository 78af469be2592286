package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"belfry/internal/gunzip"
	"belfry/pkg/api/console/manual"
	"belfry/pkg/httpkit"
)

//go:embed assets
var files embed.FS

// assets are the files that pages load, by their name with the hash of their content, which is in their URL:
// browsers keep them for good, and load a changed file at once.
type assets struct {
	byName map[string]*asset // "console.css"
	byURL  map[string]*asset // "console.0123456789abcdef.css"
}

type asset struct {
	url, contentType string
	content          func() []byte
	compressed       func() []byte // by gzip
}

// packed ends the names of large files that are embedded compressed.
const packed = ".gz"

// loadAssets reads the embedded files, once. An error is one of the program.
var loadAssets = sync.OnceValue(func() assets {
	a := assets{byName: map[string]*asset{}, byURL: map[string]*asset{}}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		panic("console: " + err.Error())
	}
	for _, e := range entries {
		name, isPacked := strings.CutSuffix(e.Name(), packed)
		kind := contentType(name)
		if kind == "" || e.IsDir() {
			continue
		}
		content, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			panic("console: " + err.Error())
		}
		a.add(name, kind, content, isPacked)
	}
	a.add("pictures.css", contentType(".css"), manual.Pictures(), false)
	return a
})

// add adds a file, whose content may be compressed.
func (a assets) add(name, kind string, content []byte, isPacked bool) {
	sum, ext := sha256.Sum256(content), path.Ext(name)
	hashed := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:8]) + ext
	f := &asset{url: Path + "/assets/" + hashed, contentType: kind}
	same := func() []byte { return content }
	if isPacked {
		f.compressed, f.content = same, func() []byte { return gunzip.Bytes(content) }
	} else {
		f.content, f.compressed = same, sync.OnceValue(func() []byte { return compress(content) })
	}
	a.byName[name], a.byURL[hashed] = f, f
}

// contentType is the media type of a file that is served; "" for the others, such as licenses, which are beside them.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return ""
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level exists
	_, _ = w.Write(content)                               // memory
	_ = w.Close()
	return b.Bytes()
}

// url returns the URL of a file.
func (a assets) url(name string) (string, error) {
	f := a.byName[name]
	if f == nil {
		return "", fmt.Errorf("there is no asset %s", name)
	}
	return f.url, nil
}

// acceptsGzip reports whether a client takes replies that are compressed by gzip.
func acceptsGzip(x *httpkit.Exchange) bool {
	return strings.Contains(x.Request.Header.Get("Accept-Encoding"), "gzip")
}

// asset serves a file without a login: it is the same in every belfry of this version.
func (c *Console) asset(x *httpkit.Exchange) error {
	name, err := x.PathParam("name")
	if err != nil {
		return err
	}
	f := c.assets.byURL[name]
	if f == nil {
		return notFound("the console has no file %s", httpkit.Truncate(name, 100))
	}
	x.SetHeader("Cache-Control", "public, max-age=31536000, immutable")
	x.SetHeader("Vary", "Accept-Encoding")
	x.SetHeader("Cross-Origin-Resource-Policy", "same-origin")
	content := f.content
	if acceptsGzip(x) {
		x.SetHeader("Content-Encoding", "gzip")
		content = f.compressed
	}
	x.Send(http.StatusOK, f.contentType, content())
	return nil
}
