package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documented is a row of docs/reference/metrics.md.
type documented struct {
	kind   string
	labels []string
}

var (
	metricRow = regexp.MustCompile("(?m)^\\| `(belfry_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	labelName = regexp.MustCompile("(?:^|[,;] )`([a-z]+)`")
	declared  = regexp.MustCompile(`(?:Name:\s+|NewDesc\()"(belfry_[a-z_]+)"`)
)

// documentedMetrics reads the tables of the reference. Labels are the names outside of the values that some of them
// have.
func documentedMetrics(t *testing.T) map[string]documented {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]documented{}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		if _, twice := all[m[1]]; twice {
			t.Errorf("the reference has %s twice", m[1])
		}
		d := documented{kind: m[2]}
		// After a colon are the values of a label, up to a semicolon.
		for _, one := range strings.Split(strings.TrimSpace(m[3]), "; ") {
			names, _, _ := strings.Cut(one, ":")
			for _, l := range labelName.FindAllStringSubmatch(names, -1) {
				d.labels = append(d.labels, l[1])
			}
		}
		slices.Sort(d.labels)
		all[m[1]] = d
	}
	return all
}

// declaredMetrics are the names of all metrics in the source of belfry.
func declaredMetrics(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "../.." && !strings.HasPrefix(path, "../../pkg") &&
			!strings.HasPrefix(path, "../../listeners") && !strings.HasPrefix(path, "../../internal"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
				all[m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The reference has each metric of belfry, with its type and its labels, and no other.
func TestTheReferenceHasEachMetric(t *testing.T) {
	p := newPlace(t, strings.Replace(books, "stores:", `metrics: {listen: '127.0.0.1:0'}
backup: {folder: backups}
binaries: {files: {type: FileStorage, map: {Books: cover}, quota: {user: 1GiB}}}
mailers: {default: {type: file}}
authentication: {providers: {email: {mailer: default}}}
stores:
  Notes: {expose: {events: true}, policy: owner, bus: true}`, 1))
	a := p.start()
	p.want(a, "GET", "/readyz", "", 200)
	reference, source := documentedMetrics(t), declaredMetrics(t)
	delete(source, "belfry_listener_attempt_seconds") // of programs with listeners of their own: below the table
	for name := range source {
		if _, has := reference[name]; !has {
			t.Errorf("the reference lacks %s", name)
		}
	}
	labels := p.described(a)
	for name, d := range reference {
		if !source[name] {
			t.Errorf("belfry has no metric %s", name)
		}
		described, has := labels[name]
		if !has {
			t.Errorf("%s is not described by a belfry that uses everything", name)
			continue
		}
		var want []string
		for _, l := range described {
			if l != "le" && l != "" {
				want = append(want, l)
			}
		}
		slices.Sort(want)
		if !slices.Equal(want, d.labels) {
			t.Errorf("the reference says that %s has the labels %v; it has %v", name, d.labels, want)
		}
	}
	families, err := a.wiring.metrics.All().Gather()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, f := range families {
		d, has := reference[f.GetName()]
		if !has {
			continue
		}
		compared++
		if kind := strings.ToLower(f.GetType().String()); kind != d.kind {
			t.Errorf("the reference says that %s is a %s; it is a %s", f.GetName(), d.kind, kind)
		}
	}
	for name, d := range reference { // those without a value here
		if total := strings.HasSuffix(name, "_total"); total != (d.kind == "counter") {
			t.Errorf("%s is a %s, says the reference", name, d.kind)
		}
	}
	if len(reference) < 50 || compared < 30 {
		t.Errorf("only %d metrics in the reference, and %d here", len(reference), compared)
	}
}
