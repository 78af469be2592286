package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"belfry/test/manual/docpages"
	"belfry/test/process"
)

// block is a code block of a page. Its first line, "```json schemas/recipe.json", names the language, and may
// go on with one word more: the file that the block is, or "run" for commands that a test executes.
type block struct {
	line     int
	language string
	word     string
	text     string
}

// configurationMark is the first line of a configuration that is complete: readers can save it and serve it.
const configurationMark = "# belfry.yaml\n"

func (b block) configuration() bool {
	return b.language == "yaml" && strings.HasPrefix(b.text, configurationMark)
}

func (b block) file() bool { return b.word != "" && b.word != "run" && b.word != "output" }

func blocksOf(source []byte) (all []block) {
	_ = ast.Walk(goldmark.New().Parser().Parse(text.NewReader(source)),
		func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			fence, ok := n.(*ast.FencedCodeBlock)
			if !ok || !entering || fence.Lines().Len() == 0 {
				return ast.WalkContinue, nil
			}
			b := block{line: newLine(source, fence.Lines().At(0).Start), text: string(fence.Lines().Value(source))}
			if fence.Info != nil {
				b.language, b.word, _ = strings.Cut(string(fence.Info.Value(source)), " ")
			}
			all = append(all, b)
			return ast.WalkContinue, nil
		})
	return all
}

func newLine(source []byte, at int) int { return 1 + strings.Count(string(source[:at]), "\n") }

// pagesWithBlocks are the README and all pages of docs, with their blocks.
func pagesWithBlocks(t *testing.T, check func(t *testing.T, page string, blocks []block)) {
	t.Helper()
	root := filepath.Join("..", "..")
	all, err := docpages.Files(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if blocks := blocksOf(source); len(blocks) > 0 {
			check(t, filepath.ToSlash(name), blocks)
		}
	}
}

// save writes the files that blocks of a page are.
func save(t *testing.T, folder string, blocks []block) {
	t.Helper()
	for _, b := range blocks {
		if !b.file() {
			continue
		}
		if !filepath.IsLocal(b.word) {
			t.Fatalf("line %d: %s is no path of a file below the configuration", b.line, b.word)
		}
		write(t, filepath.Join(folder, b.word), b.text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var (
	variable   = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]*)\}`)
	siteFolder = regexp.MustCompile(`(?m)^static: *\{folder: ([^,}]+)`)
	secretFile = regexp.MustCompile(`\$\{file:(/[^}]*)\}`)
)

// aSecret is long enough for any key of a configuration, and a name of a user as well.
const aSecret = "0123456789abcdef0123456789abcdef"

// expand sets the variables that a configuration needs, and has it read secrets from files of the test.
func expand(t *testing.T, folder, yaml string) string {
	t.Helper()
	for _, m := range variable.FindAllStringSubmatch(yaml, -1) {
		if _, set := os.LookupEnv(m[1]); !set {
			t.Setenv(m[1], aSecret)
		}
	}
	return secretFile.ReplaceAllStringFunc(yaml, func(s string) string {
		path := filepath.Join(folder, "secrets", filepath.Base(secretFile.FindStringSubmatch(s)[1]))
		write(t, path, aSecret+"\n")
		return "${file:" + path + "}"
	})
}

// Configurations that are marked as complete can be saved as they are, with the files that their page shows.
func TestConfigurationsOfPagesAreValid(t *testing.T) {
	program := process.Commands(t)
	found := 0
	pagesWithBlocks(t, func(t *testing.T, page string, blocks []block) {
		for _, b := range blocks {
			if !b.configuration() {
				continue
			}
			found++
			t.Run(page, func(t *testing.T) {
				folder := filepath.Join(t.TempDir(), "config")
				save(t, folder, blocks)
				for _, m := range siteFolder.FindAllStringSubmatch(b.text, -1) {
					write(t, filepath.Join(folder, m[1], "index.html"), "<!doctype html>")
				}
				write(t, filepath.Join(folder, "belfry.yaml"), expand(t, folder, b.text))
				out, problems, exit, err := process.RunIn(folder, program, "config", "check", "belfry.yaml")
				if err != nil {
					t.Fatal(err)
				}
				if exit != 0 {
					t.Errorf("the configuration at line %d: belfry config check ended with %d\n%s%s", b.line, exit, out,
						problems)
				}
			})
		}
	})
	if found == 0 {
		t.Errorf("no page has a yaml block that begins with %q", configurationMark)
	}
}
