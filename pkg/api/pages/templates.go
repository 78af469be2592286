package pages

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/internal/smallfile"
	"belfry/internal/stopper"
	"belfry/pkg/errs"
)

//go:embed templates
var builtIn embed.FS

// Files of templates: the layout, the style sheet, and one for each page.
const (
	layoutFile = "layout.html"
	styleFile  = "pages.css"

	// partialsFile defines parts of pages. No file replaces it: pages of a folder may use the parts, or define others
	// with their names.
	partialsFile = "partials.html"
)

func pageNames() []string {
	return []string{startPage, validatedPage, loginPage, registerPage, recoveryPage, mailPage, addressPage, failedPage,
		authorizePage, secondPage, accountPage}
}

// MaxFile bounds a file of a theme, in bytes.
const MaxFile = 256 << 10

// Templates are the pages' templates and their style sheet. They are safe for concurrent use.
type Templates struct {
	pages map[string]*template.Template
	style []byte
}

// Load parses the templates. The files of a folder replace those of belfry by their names; "" means
// no folder. Load executes each replacement once, with the data of a full page. It reports
// errs.Invalid for a file that can't be read, parsed or executed, and for one that replaces nothing.
func Load(folder string) (*Templates, error) {
	own, err := readTheme(folder)
	if err != nil {
		return nil, err
	}
	read := func(name string) (string, bool, error) {
		if text, ok := own[name]; ok {
			return text, true, nil
		}
		text, err := builtIn.ReadFile("templates/" + name)
		return string(text), false, err
	}
	t := &Templates{pages: map[string]*template.Template{}}
	style, _, err := read(styleFile)
	if err != nil {
		return nil, err
	}
	t.style = []byte(style)
	partials, err := builtIn.ReadFile("templates/" + partialsFile)
	if err != nil {
		return nil, err
	}
	layout, ownLayout, err := read(layoutFile)
	if err != nil {
		return nil, err
	}
	for _, name := range pageNames() {
		text, ownPage, err := read(name + ".html")
		if err != nil {
			return nil, err
		}
		var stop stopper.Stopper
		page, err := parse(string(partials), layout, name, text, &stop)
		if err == nil && (ownPage || ownLayout) {
			err = try(page, &stop, tryTime)
		}
		switch {
		case err == nil:
			t.pages[name] = page
		case ownPage || ownLayout:
			return nil, errs.Wrap(err, errs.Invalid, "the page %s of folder %s can't be used", name, folder)
		default:
			return nil, err
		}
	}
	return t, nil
}

// embedded returns belfry's own templates.
var embedded = sync.OnceValues(func() (*Templates, error) { return Load("") })

// parse returns the template of a page: the template of its file, inside the layout if it defines content.
func parse(partials, layout, name, text string, stop *stopper.Stopper) (*template.Template, error) {
	root := template.New(layoutFile).Funcs(stop.Functions())
	if _, err := root.New(partialsFile).Parse(partials); err != nil {
		return nil, err
	}
	if _, err := root.Parse(layout); err != nil {
		return nil, err
	}
	page, err := root.New(name + ".html").Parse(text)
	if err != nil {
		return nil, err
	}
	for _, t := range root.Templates() {
		stop.Watch(t.Tree)
	}
	if page.Lookup("content") != nil {
		return root, nil
	}
	return page, nil
}

// tryTime is how long a template may take with all samples. Those of belfry take milliseconds.
const tryTime = 10 * time.Second

// try executes a template with the data of a full page and of an empty one. It stops a template that takes too long: a
// serving process continues without the template, and must not execute it forever.
func try(t *template.Template, stop *stopper.Stopper, most time.Duration) error {
	return stop.Try(most, func() error {
		for _, v := range samples() {
			if err := t.Execute(&bounded{w: io.Discard}, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// readTheme reads the files of a folder that replace those of belfry.
func readTheme(folder string) (map[string]string, error) {
	own := map[string]string{}
	names, err := Files(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := smallfile.Read(filepath.Join(folder, name), MaxFile)
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "the page %s can't be read", name)
		}
		own[name] = string(text)
	}
	return own, nil
}

// Files returns the names of the files of a folder that Load uses; nil for "". It reports errs.Invalid for a folder
// that can't be read, and for a file that replaces nothing.
func Files(folder string) (names []string, err error) {
	if folder == "" {
		return nil, nil
	}
	known := []string{layoutFile, styleFile}
	for _, name := range pageNames() {
		known = append(known, name+".html")
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "the folder of pages can't be read")
	}
	for _, entry := range entries {
		name := entry.Name()
		switch ext := filepath.Ext(name); {
		case strings.HasPrefix(name, "."), ext != ".html" && ext != ".css":
			continue
		case !slices.Contains(known, name):
			return nil, errs.New(errs.Invalid, "the folder of pages has %s, which replaces nothing: expected %s", name,
				strings.Join(known, ", "))
		}
		names = append(names, name)
	}
	return names, nil
}

// render executes the template of a page.
func (t *Templates) render(name string, v View) ([]byte, error) {
	var page bytes.Buffer
	if err := t.pages[name].Execute(&bounded{w: &page}, v); err != nil {
		return nil, err
	}
	return page.Bytes(), nil
}

var errTooLong = errors.New("it is longer than 256 KiB")

// bounded writes at most MaxFile bytes: a template may loop.
type bounded struct {
	w io.Writer
	n int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.n += len(p); b.n > MaxFile {
		return 0, errTooLong
	}
	return b.w.Write(p)
}
