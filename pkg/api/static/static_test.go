package static_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/internal/baseurl"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/static"
)

// folder makes a folder with files, named by their paths.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dist")
	for name, text := range files {
		file := filepath.Join(path, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

var site = map[string]string{
	"index.html": "<!doctype html>the app", "assets/index-B2xk91Lm.js": "app()", "assets/index-B2xk91Lm.js.br": "BR",
	"assets/index-B2xk91Lm.js.gz": "GZIP",
	"logo.svg":                    "<svg/>", "plain.js": "plain()", "plain.js.gz": "GZIP2",
	"docs/index.html": "the docs", "docs/a.txt": "text", "empty/x.txt": "x", ".env": "SECRET", ".git/config": "SECRET",
	".well-known/security.txt": "Contact", ".well-known/apple-app-site-association": "{}",
	".well-known/.git/config": "SECRET", "docs/.well-known/x.txt": "SECRET", "docs/.secret/x.txt": "SECRET",
	"books/emma": "a file where the API is", "data.unknown": "<script>", "fixed/font.woff2": "FONT",
}

func serve(t *testing.T, o static.Options) *apitest.Front {
	t.Helper()
	o.Reserved = append(o.Reserved, "/books", "/authors", "/healthz", "/console")
	f := apitest.Start(t, func(a *api.Options) { a.Static = &o })
	f.Server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.Server.Client().Transport.(*http.Transport).DisableCompression = true
	return f
}

var modified = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

const (
	revalidate = "no-cache"
	forever    = "public, max-age=31536000, immutable"
)

// At a base URL with a path, as proxies pass it on, the front end's folder is one as well.
func TestTheFolderOfABaseURLWithAPath(t *testing.T) {
	f := apitest.Start(t, func(a *api.Options) {
		a.Static, a.Base = &static.Options{Folder: folder(t, site)}, baseurl.Parse("https://app.example.com/shop")
	})
	f.Server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	f.Do("GET", "/shop", "").Want(308).HasHeader("Location", "/shop/")
	f.Do("GET", "/shop?x=%2F", "").Want(308).HasHeader("Location", "/shop/?x=%2F")
	f.Do("GET", "/shop/docs", "").Want(308).HasHeader("Location", "/shop/docs/")
	f.Do("GET", "/docs", "").Want(308).HasHeader("Location", "/shop/docs/")
	for _, path := range []string{"/shop/", "/", "/shop/index.html"} {
		if r := f.Do("GET", path, "").Want(200); r.Text != site["index.html"] {
			t.Errorf("%s: %q", path, r.Text)
		}
	}
	f.Do("GET", "/shopping", "").Want(404)
}

func TestFilesAreServedWithTheirCaching(t *testing.T) {
	f := serve(t, static.Options{Folder: folder(t, site), Immutable: []string{"fixed"}})
	for _, c := range []struct{ path, text, kind, cache string }{
		{"/", "<!doctype html>the app", "text/html; charset=utf-8", revalidate},
		{"/index.html", "<!doctype html>the app", "text/html; charset=utf-8", revalidate},
		{"/assets/index-B2xk91Lm.js", "app()", "text/javascript; charset=utf-8", forever},
		{"/plain.js", "plain()", "text/javascript; charset=utf-8", revalidate},
		{"/logo.svg?v=1", "<svg/>", "image/svg+xml", revalidate},
		{"/fixed/font.woff2", "FONT", "font/woff2", forever},
		{"/docs/", "the docs", "text/html; charset=utf-8", revalidate},
		{"/data.unknown", "<script>", "application/octet-stream", revalidate},
	} {
		r := f.Do("GET", c.path, "").Want(200).HasHeader("Content-Type", c.kind).HasHeader("Cache-Control",
			c.cache).HasHeader("X-Content-Type-Options", "nosniff")
		if r.Text != c.text || r.Header.Get("Content-Encoding") != "" || r.Header.Get("Last-Modified") == "" {
			t.Errorf("%s: %q %v", c.path, r.Text, r.Header)
		}
		f.Do("GET", c.path, "", "If-None-Match", r.Header.Get("Etag")).Want(304)
		for _, coded := range apitest.Coded(r.Header.Get("Etag")) {
			f.Do("GET", c.path, "", "If-None-Match", coded).Want(304)
			f.Do("GET", c.path, "", "If-Match", coded).Want(200)
			f.Do("GET", c.path, "", "If-Match", coded, "Range", "bytes=0-2").Want(200)
			f.Do("GET", c.path, "", "If-Range", coded, "Range", "bytes=0-2").Want(200)
		}
		// The date is the same for what a proxy has compressed.
		f.Do("GET", c.path, "", "If-Range", r.Header.Get("Last-Modified"), "Range", "bytes=0-2").Want(200)
		f.Do("GET", c.path, "", "If-Range", r.Header.Get("Etag"), "Range", "bytes=0-2").Want(206)
		f.Do("GET", c.path, "", "If-None-Match", `"x-gzip"`).Want(200)
		if r := f.Do("GET", c.path, "", "If-Match", `"x-gzip"`); r.StatusCode != 412 {
			t.Errorf("%s with the tag of another file: %d", c.path, r.StatusCode)
		}
		f.Do("GET", c.path, "", "If-Match", r.Header.Get("Etag"), "Range", "bytes=0-2").Want(206)
		f.Do("GET", c.path, "", "If-Modified-Since", r.Header.Get("Last-Modified")).Want(304)
		if head := f.Do("HEAD", c.path, "").Want(200); head.Text != "" {
			t.Errorf("%s: HEAD has a body", c.path)
		}
		f.Do("POST", c.path, "{}").Want(404)
	}
	f.Do("GET", "/plain.js", "", "Range", "bytes=0-2").Want(206)
	f.Do("GET", "/docs", "").Want(308).HasHeader("Location", "/docs/")
	f.Do("GET", "/docs?x=%2F", "").Want(308).HasHeader("Location", "/docs/?x=%2F")
}

func TestPrecompressedFilesAreChosenByTheClient(t *testing.T) {
	f := serve(t, static.Options{Folder: folder(t, site)})
	tags := map[string]bool{}
	for accept, want := range map[string][2]string{
		"": {"app()", ""}, "br": {"BR", "br"}, "gzip, deflate, br": {"BR", "br"}, "gzip": {"GZIP", "gzip"},
		"GZIP;q=0.5":   {"GZIP", "gzip"},
		"br;q=0, gzip": {"GZIP", "gzip"}, "br;q=0.0": {"app()", ""}, "identity": {"app()", ""}, "br;q=x": {"app()", ""},
		"xbr": {"app()", ""},
	} {
		r := f.Do("GET", "/assets/index-B2xk91Lm.js", "", "Accept-Encoding", accept).Want(200).HasHeader("Vary",
			"Accept-Encoding")
		if r.Text != want[0] || r.Header.Get("Content-Encoding") != want[1] ||
			r.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
			t.Errorf("%q: %q %v", accept, r.Text, r.Header)
		}
		tags[r.Header.Get("Etag")] = true
	}
	if len(tags) != 3 {
		t.Errorf("the tags are %v", tags)
	}
	if r := f.Do("GET", "/logo.svg", "", "Accept-Encoding", "br").Want(200); r.Header.Get("Vary") != "" {
		t.Errorf("%v", r.Header)
	}
}

// A browser that opens a page of the application gets the application; what pages load, and
// what programs ask the API for, is not found.
func TestNavigationsGetTheApplication(t *testing.T) {
	f := serve(t, static.Options{Folder: folder(t, site), SPA: true})
	const html = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, c := range []struct {
		path, accept, mode string
		want               int
	}{
		{"/users/ada", html, "", 200}, {"/users/ada", html, "navigate", 200},
		{"/users/ada@example.com", html, "navigate", 200}, {"/a/b/", html, "navigate", 200},
		{"/users/ada", "*/*", "", 404}, {"/users/ada", "", "", 404}, {"/users/ada", html, "cors", 404},
		{"/users/ada", html, "no-cors", 404},
		{"/assets/old-B2xk91Lm.js", html, "navigate", 404}, {"/gone.PNG", html, "", 404},
		{"/empty/", html, "navigate", 200}, {"/empty", html, "navigate", 200},
		{"/books/x/y", html, "navigate", 404}, {"/books/", html, "navigate", 404}, {"/authors", html, "navigate", 405},
		{"/healthz/x", html, "navigate", 404},
		{"/console/x", html, "navigate", 404}, {"/.env", html, "navigate", 404}, {"/a//b", html, "navigate", 404},
		{"/a/../b", html, "navigate", 404}, {"/a%5cb", html, "navigate", 404},
	} {
		r := f.Do("GET", c.path, "", "Accept", c.accept, "Sec-Fetch-Mode", c.mode)
		if r.StatusCode != c.want ||
			c.want == 200 && (r.Text != site["index.html"] || r.Header.Get("Cache-Control") != revalidate) {
			t.Errorf("%s with %q, %q: %d %v", c.path, c.accept, c.mode, r.StatusCode, r.Header)
		}
		if c.want == 404 && !strings.Contains(r.Text, "nothing is exposed at this path") &&
			!strings.HasPrefix(c.path, "/books/") {
			t.Errorf("%s: %s", c.path, r.Text)
		}
	}
	f.Do("POST", "/users/ada", "{}", "Accept", html).Want(404)
	f.Do("GET", "/books/emma", "", "Accept", html).Want(404).HasHeader("Content-Type", "application/problem+json")
	other := serve(t, static.Options{Folder: folder(t, site)})
	other.Do("GET", "/users/ada", "", "Accept", html, "Sec-Fetch-Mode", "navigate").Want(404)
}

// Nothing outside of the folder, nothing hidden and no list of files is served.
func TestOnlyFilesOfTheFolderAreServed(t *testing.T) {
	path := folder(t, site)
	outside := filepath.Join(filepath.Dir(path), "outside")
	for _, err := range []error{
		os.MkdirAll(outside, 0o700), os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("SECRET"), 0o600),
		os.Symlink(outside, filepath.Join(path, "out")),
		os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(path, "secret.txt")),
		os.Symlink("../outside/secret.txt", filepath.Join(path, "relative.txt")),
		os.Symlink("docs/a.txt", filepath.Join(path, "inside.txt")),
		os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(path, "logo.svg.br")),
		os.Symlink("loop", filepath.Join(path, "loop")),
		os.Symlink(".git", filepath.Join(path, "git")), os.Symlink(".git/config", filepath.Join(path, "git.txt")),
		os.Symlink("git/config", filepath.Join(path, "twice.txt")),
		os.Symlink("../.env", filepath.Join(path, "docs", "up.txt")),
		os.Symlink("../docs/.secret", filepath.Join(path, "docs", "s")),
		os.Symlink("../plain.js", filepath.Join(path, "docs", "plain.js")),
		os.Symlink("..", filepath.Join(path, "docs", "top")), os.Symlink("../..", filepath.Join(path, "docs", "above")),
		os.Symlink(".env", filepath.Join(path, "plain.js.br")), os.Symlink("docs", filepath.Join(path, "d")),
		os.Symlink("../.git", filepath.Join(path, ".well-known", "git")),
		os.Symlink(filepath.Join(path, "docs"), filepath.Join(path, "absolute")),
		os.Mkdir(filepath.Join(path, "gitpage"), 0o700),
		os.Symlink("../.git/config", filepath.Join(path, "gitpage", "index.html")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	f := serve(t, static.Options{Folder: path})
	for _, p := range []string{
		"/.env", "/.git/config", "/docs/.hidden", "/out/secret.txt", "/secret.txt", "/relative.txt", "/loop", "/empty/",
		"/empty", "/assets/", "/assets",
		"/../outside/secret.txt", "/%2e%2e/outside/secret.txt", "/..%2foutside%2fsecret.txt", "/docs/..%2f.env",
		"//outside/secret.txt", "/docs//a.txt", "/docs/a.txt/",
		"/git/config", "/git.txt", "/git", "/twice.txt", "/docs/up.txt", "/docs/s/x.txt", "/docs/top/.env",
		"/docs/above/outside/secret.txt", "/.well-known/.git/config", "/.well-known/git/config", "/absolute/a.txt",
		"/gitpage/",
		"/docs/.well-known/x.txt", "/.well-known", "/.well-known/", "/.well-known/nothing", "/.well-known/../.env",
		"/.well-knownx", "/.well-known%2f.git%2fconfig", "/.", "/..", "/.well-known/.", "/.well-known/..",
		"/%2eenv", "/docs%5c..%5c.env", "/docs/a.txt%00", "/docs/%ff", "/nothing", "/" + strings.Repeat("x", 5000),
		"/" + strings.Repeat("a/", 3000),
	} {
		r := f.Raw("GET "+p+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", false)
		if r.StatusCode != 404 || strings.Contains(r.Text, "SECRET") || strings.Contains(r.Text, "index-") {
			t.Errorf("%.60s: %d %.200s", p, r.StatusCode, r.Text)
		}
	}
	for p, text := range map[string]string{"/inside.txt": "text", "/docs/plain.js": "plain()",
		"/docs/top/plain.js": "plain()", "/d/a.txt": "text", "/d/top/d/a.txt": "text"} {
		if r := f.Do("GET", p, "").Want(200); r.Text != text {
			t.Errorf("%s: %q", p, r.Text)
		}
	}
	if r := f.Do("GET", "/plain.js", "", "Accept-Encoding", "br").Want(200); r.Text != "plain()" ||
		r.Header.Get("Content-Encoding") != "" {
		t.Error(r.Text)
	}
	if r := f.Do("GET", "/logo.svg", "", "Accept-Encoding", "br").Want(200); r.Text != "<svg/>" {
		t.Error(r.Text)
	}
	f.Alive()
}

// What others look up about the host is served; what is not there is not found, also by an application.
func TestWellKnownFilesAreServed(t *testing.T) {
	f := serve(t, static.Options{Folder: folder(t, site), SPA: true})
	f.Do("GET", "/.well-known/security.txt", "").Want(200).HasHeader("Content-Type",
		"text/plain; charset=utf-8").HasHeader("Cache-Control", revalidate)
	f.Do("GET", "/.well-known/apple-app-site-association", "").Want(200).HasHeader("Content-Type", "application/json")
	for _, p := range []string{"/.well-known/change-password", "/.well-known/", "/.well-known",
		"/.well-known/.git/config", "/docs/.well-known/x.txt"} {
		f.Do("GET", p, "", "Sec-Fetch-Mode", "navigate", "Accept", "text/html").Want(404)
	}
}

// Kubernetes makes the files of a volume links into a folder that it replaces at once.
func TestAVolumeOfKubernetesIsServed(t *testing.T) {
	path := folder(t, map[string]string{"..2026_01_01/index.html": "the app", "..2026_01_01/.env": "SECRET"})
	for name, target := range map[string]string{"..data": "..2026_01_01", "index.html": "..data/index.html",
		"env.txt": "..data/.env"} {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	f := serve(t, static.Options{Folder: path})
	if r := f.Do("GET", "/", "").Want(200); r.Text != "the app" {
		t.Error(r.Text)
	}
	for _, p := range []string{"/..data/index.html", "/..2026_01_01/index.html", "/env.txt", "/..data"} {
		f.Do("GET", p, "").Want(404)
	}
}

// A deployment replaces the folder, or where its name leads to, while belfry runs.
func TestAReplacedFolderIsServed(t *testing.T) {
	current := filepath.Join(t.TempDir(), "current")
	swap := func(text string) {
		release := folder(t, map[string]string{"index.html": text})
		// Build tools set all files to one time.
		if err := os.Chtimes(filepath.Join(release, "index.html"), modified, modified); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(current); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(release, current); err != nil {
			t.Fatal(err)
		}
	}
	swap("one")
	f := serve(t, static.Options{Folder: current, SPA: true})
	first := f.Do("GET", "/", "").Want(200)
	swap("two")
	second := f.Do("GET", "/", "", "If-None-Match", first.Header.Get("Etag")).Want(200)
	if first.Text != "one" || second.Text != "two" {
		t.Errorf("%q, then %q", first.Text, second.Text)
	}
	if err := os.Remove(current); err != nil {
		t.Fatal(err)
	}
	f.Do("GET", "/", "").Want(503)
	if err := os.Mkdir(current, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Do("GET", "/", "", "Sec-Fetch-Mode", "navigate").Want(503)
	f.Do("GET", "/x.js", "").Want(404)
}

// A name that is taken for hashed by mistake would be kept for a year.
func TestNamesWithAHashAreKept(t *testing.T) {
	files := map[string]string{}
	want := map[string]bool{
		"index-B2xk91Lm.js": true, "main.8f3a1b2c.js": true, "main.8f3a1b2c.chunk.css": true, "chunk-5ZKXTOV2.js": true,
		"a.0123456789abcdef0123.woff2": true, "x-_a-B2xkL.js": true,
		"index.js": false, "my-component.js": false, "my-DropDown.js": false, "app-Version2.js": false,
		"report-20250101.pdf": false, "photo-mountain2.jpg": false, "vue.runtime.js": false,
		"jquery-3.7.1.min.js": false, "deadbeef.js": false, "feed-deadbeef.js": false, "B2xk91Lm.js": false,
		"icons-sprite-v2.svg": false, "index-B2xk91Lm9.js": false,
	}
	for name := range want {
		files[name] = "x"
	}
	f := serve(t, static.Options{Folder: folder(t, files)})
	for name, hashed := range want {
		cache := revalidate
		if hashed {
			cache = forever
		}
		f.Do("GET", "/"+name, "").Want(200).HasHeader("Cache-Control", cache)
	}
}

func TestOtherMethodsHaveNoFiles(t *testing.T) {
	f := serve(t, static.Options{Folder: folder(t, site)})
	r := httptest.NewRequest("OPTIONS", "/plain.js", http.NoBody)
	w := httptest.NewRecorder()
	f.API.ServeHTTP(w, r)
	if w.Code != 404 {
		t.Error(w.Code)
	}
}
