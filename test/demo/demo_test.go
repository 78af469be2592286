package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// runDemo runs the whole demo with the sample on a belfry with the race detector.
func runDemo(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	err := show(t.Context(), process.Program(t), true, &out, &out)
	t.Log("\n" + out.String())
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func want(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("the output does not have %q", line)
		}
	}
}

func TestSample(t *testing.T) {
	want(t, runDemo(t),
		"Data: the sample that comes with belfry: 4 countries, 17 subdivisions\n",
		"4 objects read, 4 created, in ", "17 objects read, 17 created, in ",
		"GET /countries/DE: Germany, DEU, with 6 subdivisions\n",
		"DE-TH   Thüringen (Land)\n",
		"All 4 countries together have 17 subdivisions in their arrays, as many as the file.\n",
		"BE-VLG, Vlaanderen, has 3 children.\n",
		"DE-BB   Renamed by the demo (Land)\n",
		"DELETE /countries/BE, which has 8 subdivisions\n",
		"GET /subdivisions/BE-VLG: 404, and so for all 8.\n",
		"0 differences\n",
	)
}

// Where the complete data is neither installed nor can be downloaded, the demo
// reports that and loads the sample.
func TestSampleReplacesMissingData(t *testing.T) {
	root := t.TempDir()
	if err := os.CopyFS(filepath.Join(root, "test", "demo", "sample"), os.DirFS("sample")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	var out bytes.Buffer
	data, err := choose(t.Context(), root, false, &out)
	if err != nil {
		t.Fatal(err)
	}
	if hasISO(filepath.Join("/", isoFolder)) {
		want(t, out.String(), "Data: Debian's iso-codes: ")
		return
	}
	want(t, out.String(), "Debian's iso-codes is not available here (",
		"Data: the sample that comes with belfry: 4 countries, 17 subdivisions\n")
	if len(data.countries) != 4 {
		t.Errorf("%d countries", len(data.countries))
	}
}

func TestParentsOfBothForms(t *testing.T) {
	subdivisions := []record{
		{"code": "GB-ENG"}, {"code": "GB-ESS", "parent": "GB-ENG"}, {"code": "FR-29", "parent": "BRE"},
		{"code": "FR-BRE"},
	}
	link(subdivisions)
	for i, want := range []string{"", "GB-ENG", "FR-BRE", ""} {
		if got := subdivisions[i]["parent"]; got != want {
			t.Errorf("parent of %s is %q; want %q", subdivisions[i]["code"], got, want)
		}
	}
	if subdivisions[3]["country"] != "FR" {
		t.Errorf("country of FR-BRE is %q", subdivisions[3]["country"])
	}
}

func TestErrorsNameTheInvalidFile(t *testing.T) {
	for content, want := range map[string]string{"{": "unexpected end", `{"3166":[]}`: `no list "3166-1"`} {
		folder := t.TempDir()
		path := filepath.Join(folder, "iso_3166-1.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readISO(folder)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// A failed download leaves no files that would be used as a package.
func TestFailedDownloadLeavesNoFiles(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	cache := filepath.Join(t.TempDir(), "cache", "iso-codes")
	if err := fetchISO(t.Context(), cache); err == nil || !strings.Contains(err.Error(), "apt-get") {
		t.Errorf("without apt-get: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(cache)); err != nil || len(left) > 0 {
		t.Errorf("files after the failure: %v, %v", left, err)
	}
}
