// Command rename-module gives the module another path:
//
//	go run ./script/rename-module example.org/capstan
//
// The path must sort before every dependency's, since Go initialises packages
// in the order of their paths and the sandbox child has to come first.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// firstDependency is the path that sorts first among those that Capstan uses
// or will use.
const firstDependency = "charm.land"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rename-module:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || args[0] == "" {
		return fmt.Errorf("want one argument, the new module path")
	}
	to := args[0]
	if !regexp.MustCompile(`^[a-z0-9][a-zA-Z0-9._~-]*(/[a-zA-Z0-9._~-]+)*$`).MatchString(to) {
		return fmt.Errorf("%q is no module path", to)
	}
	if to >= firstDependency {
		return fmt.Errorf("%s sorts after %s: the sandbox child would be initialised after the dependencies, which costs every program start many times its time; choose a path that sorts before it", to, firstDependency)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		return fmt.Errorf("run this from the root of the repository: %w", err)
	}
	m := regexp.MustCompile(`(?m)^module (\S+)$`).FindSubmatch(mod)
	if m == nil {
		return fmt.Errorf("go.mod names no module")
	}
	from := string(m[1])
	mod = []byte(strings.Replace(string(mod), "module "+from, "module "+to, 1))
	if err := os.WriteFile("go.mod", mod, 0o644); err != nil {
		return err
	}
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		switch {
		case d.IsDir():
			return nil
		case d.Name() == "go.mod" && path != "go.mod":
			return rewrite(path, nested(from), "${1}"+to+"${2}")
		case filepath.Ext(path) == ".go":
			return rewrite(path, packages(from), `"`+to+`${1}`)
		}
		return nil
	})
}

// packages finds the paths of our packages where they stand in quotes, and the
// module's own where a comment says that it is one.
func packages(from string) *regexp.Regexp {
	return regexp.MustCompile(`"` + regexp.QuoteMeta(from) + `(/(?:internal|cmd|bench|script)/|" // the module's path)`)
}

// nested finds the module's path in the go.mod of a module within it.
func nested(from string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^((?:module |require |replace |\t)?)` + regexp.QuoteMeta(from) + `([/ ])`)
}

func rewrite(path string, what *regexp.Regexp, to string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := what.ReplaceAllString(string(old), to)
	if text == string(old) {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), info.Mode().Perm())
}
