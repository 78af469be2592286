package account

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whoever adds a field to a record decides what becomes of it when somebody gets an account back.
func TestWhatIsLeftOfAnAccountIsKnownForEachField(t *testing.T) {
	known := map[string]bool{}
	for _, table := range []map[string]left{leftOfUsers, leftOfIdents, leftOfSessions, leftOfTokens} {
		for name, l := range table {
			known[name] = true
			for _, f := range []fate{l.recovery, l.firstProof, l.undoing, l.reset} {
				if f == "" {
					t.Errorf("what becomes of %s is not said of each act", name)
				}
			}
		}
	}
	for _, name := range []string{
		"state", "email", // of a URL, of a profile
		"uuid",                           // every record has one
		"count", "at", "holder", "until", // within a field
		"name", "password", "login", "type", // of forms as well, and in the tables
	} {
		known[name] = true
	}
	written := writtenFields(t)
	if len(written) < 40 {
		t.Fatalf("the code writes %d fields only: %v", len(written), written)
	}
	for _, name := range written {
		if !known[name] {
			t.Errorf("the field %s is in none of the tables of left.go", name)
		}
	}
}

// writtenFields returns the names of the fields that the code of the package writes into objects.
func writtenFields(t *testing.T) []string {
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, 0) //nolint:staticcheck // one folder, without build tags
	if err != nil {
		t.Fatal(err)
	}
	constants, found := map[string]string{}, map[string]bool{}
	text := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, _ := strconv.Unquote(e.Value)
			return s
		case *ast.Ident:
			return constants[e.Name]
		}
		return ""
	}
	var files []*ast.File
	for name, file := range packages["account"].Files {
		if !strings.HasSuffix(name, "_test.go") {
			files = append(files, file)
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
				for i, name := range spec.Names {
					if value, ok := spec.Values[i].(*ast.BasicLit); ok && value.Kind == token.STRING {
						constants[name.Name] = text(value)
					}
				}
			}
			return true
		})
	}
	isObject := func(e ast.Expr) bool {
		s, ok := e.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Object"
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Set" && len(n.Args) == 2 {
					found[text(n.Args[0])] = true
				}
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && isObject(n.Type) {
						found[text(kv.Key)] = true
					}
				}
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					if index, ok := e.(*ast.IndexExpr); ok {
						if x, ok := index.X.(*ast.Ident); ok && (x.Name == "fields" || x.Name == "o") {
							found[text(index.Index)] = true
						}
					}
				}
			}
			return true
		})
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}
