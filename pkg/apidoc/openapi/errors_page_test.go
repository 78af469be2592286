package openapi

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/errs"
	problems "belfry/pkg/problem"
)

var (
	typeHeading = regexp.MustCompile(`(?m)^### (.+)\n\n(.*)`)
	pageStatus  = regexp.MustCompile(`^Status (\d{3})\. `)
)

// The headers of problems link to the headings of the page, and programs compare types with those that it lists.
func TestErrorsPageHasAHeadingForEachType(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Problem types\n")
	if !found {
		t.Fatal("the page has no section of the types")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	onPage := map[string]string{} // type: status
	for _, m := range typeHeading.FindAllStringSubmatch(section, -1) {
		if onPage[m[1]] != "" {
			t.Errorf("the page has two headings for %s", m[1])
		}
		status := pageStatus.FindStringSubmatch(m[2])
		if status == nil {
			t.Errorf("the section of %s does not begin with its status: %q", m[1], m[2])
			continue
		}
		onPage[m[1]] = status[1]
	}

	types := map[string]int{} // type: status, 0 where the code of the server has it elsewhere
	for kind := errs.Internal; ; kind++ {
		if kind > errs.Canceled && strings.HasPrefix(kind.String(), "kind(") {
			break
		}
		n := problems.Of(kind)
		types[n.Type] = n.Status
	}
	for _, name := range literalTypes(t) {
		if _, ok := types[name]; !ok {
			types[name] = 0
		}
	}
	described := map[string]bool{}
	for _, f := range failures() {
		for _, name := range f.types {
			described[name] = true
			if status, ok := types[name]; !ok || status != 0 && status != f.status {
				t.Errorf("the document describes %s with status %d, the server has %v, %d", name, f.status, ok, status)
			}
			types[name] = f.status
		}
	}

	for _, name := range slices.Sorted(maps.Keys(types)) {
		status, ok := onPage[name]
		if !ok {
			t.Errorf("docs/reference/errors.md has no heading ### %s", name)
			continue
		}
		if want := fmt.Sprint(types[name]); types[name] != 0 && status != want {
			t.Errorf("docs/reference/errors.md says that %s has status %s, not %s", name, status, want)
		}
		if !described[name] && name != "method-not-allowed" { // which any path can reply with
			t.Errorf("no failure of the document has the type %s", name)
		}
	}
	for name := range onPage {
		if _, ok := types[name]; !ok {
			t.Errorf("docs/reference/errors.md has the heading %s, which is no type of a problem", name)
		}
	}
}

// literalTypes returns the types of problems that have no kind: the code that makes them names them, as the field Type
// of a Problem with a Title.
func literalTypes(t *testing.T) (all []string) {
	t.Helper()
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, name)
		}
	}
	err := filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit: // Problem{Type: "timeout", Title: ...}
				fields := map[string]ast.Expr{}
				for _, e := range n.Elts {
					if pair, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := pair.Key.(*ast.Ident); ok {
							fields[key.Name] = pair.Value
						}
					}
				}
				if fields["Title"] != nil && fields["Status"] != nil {
					add(fields["Type"])
				}
			case *ast.AssignStmt: // p.Type, p.Title = "step-up-required", ...
				if len(n.Lhs) == 2 && len(n.Rhs) == 2 && selects(n.Lhs[0], "Type") && selects(n.Lhs[1], "Title") {
					add(n.Rhs[0])
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 5 {
		t.Fatalf("only %v are found: are they made in another way now?", all)
	}
	return all
}

func selects(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}
