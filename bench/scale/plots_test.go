package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/kit/programs"
)

// plots draws files into a new folder, and returns that.
func plots(t *testing.T, files ...string) string {
	t.Helper()
	program, err := programs.Plots()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), program,
		append([]string{"-out", folder}, files...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

// texts are those of an SVG file.
func texts(t *testing.T, svg []byte) string {
	t.Helper()
	var all []string
	in := false
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return strings.Join(all, "\n")
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			in = token.Name.Local == "text"
		case xml.CharData:
			if in {
				all = append(all, string(token))
			}
		case xml.EndElement:
			in = false
		}
	}
}

func TestPlotsShowEachLineAndAreTheSameEachTime(t *testing.T) {
	first, again := plots(t, "testdata/points.json"), plots(t, "testdata/points.json")
	for name, want := range map[string][]string{
		"scale-dynamodb-fronts.svg": {"Requests on two processors, dynamodb (stand-in)", "create", "create, simulated",
			"get", "4", "1,000"},
		"scale-dynamodb-workers.svg": {"Mapped events on two processors, dynamodb (stand-in)", "map"},
		"growth.svg":                 {"get", "10,000", "100,000", "1,000,000", "times as long as with 10,000"},
	} {
		svg, err := os.ReadFile(filepath.Join(first, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := read(t, filepath.Join(again, name)); !bytes.Equal(svg, got) {
			t.Errorf("%s differs the second time", name)
		}
		shown := "\n" + texts(t, svg) + "\n"
		for _, text := range want {
			if !strings.Contains(shown, "\n"+text+"\n") {
				t.Errorf("%s does not show %q: %s", name, text, shown)
			}
		}
	}
	if files, _ := filepath.Glob(filepath.Join(first, "*")); len(files) != 3 {
		t.Errorf("%q", files)
	}
}

// What docs/scaling.md shows is what bench/measured has, by this version of the simulation.
func TestTheFiguresAndTablesAreThoseOfTheMeasuredFiles(t *testing.T) {
	const measured, images, page = "../measured", "../../docs/images", "../../docs/scaling.md"
	folder := t.TempDir()
	simulated := filepath.Join(folder, "scale.json")
	var out bytes.Buffer
	if err := run(&out, filepath.Join(measured, "scale"), true, "", planned); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(simulated, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn, _ := filepath.Glob(filepath.Join(plots(t, simulated, filepath.Join(measured, "growth.json")), "*.svg"))
	if len(drawn) < 3 {
		t.Fatalf("%q were drawn", drawn)
	}
	for _, file := range drawn {
		if !bytes.Equal(read(t, file), read(t, filepath.Join(images, filepath.Base(file)))) {
			t.Errorf("docs/images/%s is not what was measured: run `make plots`", filepath.Base(file))
		}
	}
	written := filepath.Join(folder, "scaling.md")
	if err := os.WriteFile(written, read(t, page), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(&out, filepath.Join(measured, "scale"), false, written, planned); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, written), read(t, page)) {
		t.Error("the tables of docs/scaling.md are not what was measured: run `make plots`")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
