package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belfry/test/manual/docpages"
	"belfry/test/manual/prose"
)

// lint prints what is wrong with the words of pages, and fails if something is.
func lint(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("lint", flag.ContinueOnError)
	stats := flags.Bool("stats", false, "print the measures of each page instead")
	worst := flags.Int("worst", 0, "print the `N` longest sentences of each page instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files := flags.Args()
	if len(files) == 0 {
		var err error
		if files, err = docpages.Files("."); err != nil {
			return err
		}
		code, err := sources(".")
		if err != nil {
			return err
		}
		if !*stats && *worst == 0 {
			files = append(files, code...)
		}
	}
	found := 0
	var total measures
	if *stats {
		fmt.Fprint(out, header)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		page, err := check(file, source)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case *stats:
			m := measure(source, page)
			total.add(m)
			m.print(out, file)
		case *worst > 0:
			slices.SortStableFunc(page.Sentences,
				func(a, b prose.Sentence) int { return cmp.Compare(b.Words, a.Words) })
			for _, s := range page.Sentences[:min(*worst, len(page.Sentences))] {
				fmt.Fprintf(out, "%s:%d: %d: %s\n", file, s.Line, s.Words, s.Text)
			}
		default:
			for _, f := range page.Findings {
				fmt.Fprintf(out, "%s:%d: %s\n", file, f.Line, f.Message)
			}
			found += len(page.Findings)
		}
	}
	if *stats {
		total.print(out, "all")
	}
	if found > 0 {
		return fmt.Errorf("%d findings: docs/style.md has the rules", found)
	}
	return nil
}

// check reads a page or a file of Go.
func check(file string, source []byte) (*prose.Page, error) {
	if filepath.Ext(file) == ".go" {
		return prose.CheckCode(source)
	}
	return prose.Check(source), nil
}

// sources returns the files of the product, without its tests.
func sources(root string) (all []string, err error) {
	for _, folder := range []string{"cmd", "config", "internal", "listeners", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measures are those of a page, or of several.
type measures struct {
	words                                  int // of the file, as wc counts them
	inSentences, sentences, over25, over40 int
	paragraphs, longParagraphs, findings   int
}

const header = "  words  sentences  mean  over 25  over 40  paragraphs  over 80  findings  page\n"

func measure(source []byte, p *prose.Page) measures {
	return measures{
		words: prose.Words(string(source)), inSentences: p.Words(), sentences: len(p.Sentences),
		over25: p.Longer(prose.MeanSentence), over40: p.Longer(prose.MaxSentence),
		paragraphs: p.Paragraphs, longParagraphs: p.LongParagraphs, findings: len(p.Findings),
	}
}

func (m *measures) add(other measures) {
	m.words += other.words
	m.inSentences += other.inSentences
	m.sentences += other.sentences
	m.over25 += other.over25
	m.over40 += other.over40
	m.paragraphs += other.paragraphs
	m.longParagraphs += other.longParagraphs
	m.findings += other.findings
}

func (m *measures) print(out io.Writer, name string) {
	fmt.Fprintf(out, "%7d  %9d  %4.1f  %7d  %7d  %10d  %7d  %8d  %s\n", m.words, m.sentences,
		float64(m.inSentences)/float64(max(m.sentences, 1)), m.over25, m.over40,
		m.paragraphs, m.longParagraphs, m.findings, name)
}
