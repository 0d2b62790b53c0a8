// Package conformance knows which test proves which requirement: it collects
// the ids that tests cite and writes docs/conformance.md from them.
//
// It is no part of the product, and no judge of a test: that a test fails
// without what it cites is what script/mutants and readers are for.
package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Proof is a test that cites an id: a function of a Go file, or a whole
// testscript.
type Proof struct {
	File string // slash-separated, from the root of the repository
	Test string // empty for a testscript
}

// ids matches a row, a range of rows as "S0-044 to S0-051", in a comment also
// over a line's end, and a public report.
var ids = regexp.MustCompile(`\b(S[0-3])-(\d{3})\b(?:\s+to\s+(?://\s+)?(S[0-3])-(\d{3})\b)?|\bBUG-[A-Z]+-\d+\b`)

// Cited collects the citations of all tests below root, by id. The packages of
// internal/arch, which only list ids, and nested modules do not count. An id
// that stands in a test file but belongs to no test is an error.
func Cited(root fs.FS) (map[string][]Proof, error) {
	found := map[string][]Proof{}
	err := fs.WalkDir(root, ".", func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case d.Name() == ".git" || dir == "internal/arch":
			return fs.SkipDir
		case dir != ".":
			if _, err := fs.Stat(root, path.Join(dir, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		return citedIn(root, dir, found)
	})
	if err != nil {
		return nil, fmt.Errorf("collecting citations: %w", err)
	}
	for id, proofs := range found {
		slices.SortFunc(proofs, func(a, b Proof) int {
			return strings.Compare(a.File+"\x00"+a.Test, b.File+"\x00"+b.Test)
		})
		found[id] = slices.Compact(proofs)
	}
	return found, nil
}

// citedIn adds the citations of one folder.
func citedIn(root fs.FS, dir string, found map[string][]Proof) error {
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return err
	}
	var p testPackage
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		script := strings.HasSuffix(name, ".txtar")
		if e.IsDir() || !script && !strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if script {
			for _, c := range citations(string(data)) {
				found[c.id] = append(found[c.id], Proof{File: name})
			}
		} else if err := p.add(name, data); err != nil {
			return err
		}
	}
	return p.prove(found)
}

type citation struct {
	id     string
	offset int
}

// citations returns the ids in a text, each id of a range.
func citations(text string) []citation {
	var out []citation
	for _, m := range ids.FindAllStringSubmatchIndex(text, -1) {
		if m[6] < 0 {
			out = append(out, citation{text[m[0]:m[1]], m[0]})
			continue
		}
		seed := text[m[2]:m[3]]
		from, _ := strconv.Atoi(text[m[4]:m[5]]) // three digits each
		to, _ := strconv.Atoi(text[m[8]:m[9]])
		for n := from; n <= to; n++ {
			out = append(out, citation{fmt.Sprintf("%s-%03d", seed, n), m[0]})
		}
	}
	return out
}

// testPackage is what the test files of a folder declare.
type testPackage struct {
	decls []*decl
	cites []struct {
		citation
		at *decl
	}
}

// decl is a declaration with the comments before it.
type decl struct {
	file     string
	from, to int      // bytes of the file
	names    []string // that it declares
	uses     map[string]bool
}

func (d *decl) test() bool {
	return len(d.names) == 1 && slices.ContainsFunc([]string{"Test", "Fuzz", "Benchmark", "Example"}, func(kind string) bool {
		return strings.HasPrefix(d.names[0], kind)
	}) && d.names[0] != "TestMain"
}

func (p *testPackage) add(name string, data []byte) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var decls []*decl
	from := 0
	for _, a := range f.Decls {
		d := &decl{file: name, from: from, to: set.Position(a.End()).Offset, names: declared(a), uses: map[string]bool{}}
		from = d.to
		ast.Inspect(a, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				d.uses[id.Name] = true
			}
			return true
		})
		decls = append(decls, d)
	}
	p.decls = append(p.decls, decls...)
	for _, c := range citations(string(data)) {
		i := slices.IndexFunc(decls, func(d *decl) bool { return c.offset < d.to })
		if i < 0 {
			return fmt.Errorf("%s cites %s after its last test", name, c.id)
		}
		p.cites = append(p.cites, struct {
			citation
			at *decl
		}{c, decls[i]})
	}
	return nil
}

func declared(a ast.Decl) []string {
	var names []string
	switch a := a.(type) {
	case *ast.FuncDecl:
		names = []string{a.Name.Name}
	case *ast.GenDecl:
		for _, s := range a.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}

// prove adds the tests of the citations: the one that a citation stands in or
// before, else, for a table or a helper, those that use it.
func (p *testPackage) prove(found map[string][]Proof) error {
	for _, c := range p.cites {
		tests := p.users(c.at)
		if len(tests) == 0 {
			return fmt.Errorf("%s cites %s at %s, which no test uses", c.at.file, c.id, strings.Join(c.at.names, ", "))
		}
		for _, t := range tests {
			found[c.id] = append(found[c.id], Proof{File: t.file, Test: t.names[0]})
		}
	}
	return nil
}

func (p *testPackage) users(at *decl) []*decl {
	if at.test() {
		return []*decl{at}
	}
	var tests []*decl
	seen := map[*decl]bool{at: true}
	for todo := []*decl{at}; len(todo) > 0; todo = todo[1:] {
		for _, d := range p.decls {
			if seen[d] || !slices.ContainsFunc(todo[0].names, func(n string) bool { return d.uses[n] }) {
				continue
			}
			seen[d] = true
			if d.test() {
				tests = append(tests, d)
			} else {
				todo = append(todo, d)
			}
		}
	}
	return tests
}
