package floors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// maxMethods is how many methods a type may have: one with more has several subjects.
const maxMethods = 60

// No type has so many methods that nobody knows them.
func TestTypesHaveFewMethods(t *testing.T) {
	most, files := 0, token.NewFileSet()
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "belfry/test/") {
			continue
		}
		count := map[string]int{}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
					count[receiver(f.Recv.List[0].Type)]++
				}
			}
		}
		for name, n := range count {
			most = max(most, n)
			if n > maxMethods {
				t.Errorf("%s.%s has %d methods, and may have %d: split it by subject", p.ImportPath, name, n,
					maxMethods)
			}
		}
	}
	if most < maxMethods/2 {
		t.Errorf("the largest type has %d methods: are all counted?", most)
	}
}

// receiver is the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
