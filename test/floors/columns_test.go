package floors

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how wide a line of code may be. A tab has the width of four.
const maxColumns = 120

// No line of the product is wider than a window beside another one, but for what can't be broken: raw strings with tags,
// patterns and texts, drawings in comments, addresses, and lines with directives.
func TestLinesAreNotWide(t *testing.T) {
	lines := 0
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "belfry/test/") {
			continue
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			whole := unbreakable(source)
			for i, line := range strings.Split(string(source), "\n") {
				lines++
				if width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); width > maxColumns && !whole[i+1] {
					t.Errorf("%s:%d has %d columns, and may have %d", path, i+1, width, maxColumns)
				}
			}
		}
	}
	if lines < 100_000 {
		t.Errorf("%d lines were read: are these all?", lines)
	}
}

// unbreakable are the lines of a file that have to be as they are.
func unbreakable(source []byte) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	lines := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		line := file.Line(pos)
		switch {
		case kind == token.EOF:
			return lines
		case kind == token.STRING && text[0] == '`':
			for n := range strings.Count(text, "\n") + 1 {
				lines[line+n] = true
			}
		case kind == token.STRING && len(text) > maxColumns/2 && !strings.Contains(text, " "):
			lines[line] = true
		case kind == token.COMMENT:
			drawing := strings.HasPrefix(text, "//\t")
			lines[line] = lines[line] || drawing || strings.HasPrefix(text, "//nolint:") || strings.Count(text, " ") == 1
		}
	}
}
