// Command fidelity measures how exactly the signatures that a model reads say
// what the schemas of real tools demand:
//
//	go run ./bench/fidelity [-data DIR] [-v]
//
// For each tool it makes values that the schema takes, and others that differ from
// these in one place; the validator says which of them are valid. The signature
// is read by a parser of this package's own and has to take the valid ones and
// refuse the others. Neither the parser nor the making of values shares code
// with what writes signatures. Bounds, patterns, formats and conditions are told
// in comments; their numbers and names have to stand in the text.
//
// Of each eighth tool the signature is changed in each place as well, and judged
// again: a change should be noticed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"capstan/internal/tool"
)

func main() {
	shared := cmp.Or(os.Getenv("CAPSTAN_SHARED"), "../shared")
	dir := flag.String("data", filepath.Join(shared, "data"), "directory of the shared sets")
	verbose := flag.Bool("v", false, "say what is wrong with each tool")
	flag.Parse()
	if err := run(*dir, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

func run(dir string, verbose bool) error {
	real, err := servers(filepath.Join(dir, "mcp"))
	if err != nil {
		return err
	}
	others, err := corpora(dir)
	if err != nil {
		return err
	}
	fmt.Println("| Set | Tools | Exact | Score % | Valid values | Invalid values | Unusable schemas | Changes of signatures | of these noticed |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|")
	for _, set := range []struct {
		name  string
		tools []tool.Spec
	}{{"MCP servers", real}, {"Retrieval corpora", others}} {
		n, changed, unnoticed := 0, 0, 0
		t := count(set.tools, func(name string, v *verdict, text string) {
			if n++; n%8 == 0 && len(v.faults) == 0 && v.unusable == nil {
				all, alive := v.survivors()
				changed, unnoticed = changed+all, unnoticed+len(alive)
			}
			if verbose && (len(v.faults) > 0 || v.unusable != nil) {
				fmt.Fprintf(os.Stderr, "TOOL %s\n%s\n", name, text)
				if v.unusable != nil {
					fmt.Fprintln(os.Stderr, "UNUSABLE", v.unusable)
				}
				for _, f := range v.faults[:min(len(v.faults), 4)] {
					fmt.Fprintln(os.Stderr, "FAULT "+f)
				}
			}
		})
		fmt.Printf("| %s | %d | %d | %.2f | %d | %d | %d | %d | %d |\n",
			set.name, t.tools, t.exact, t.score(), t.valid, t.invalid, t.unusable, changed, changed-unnoticed)
	}
	return nil
}

// A tally counts verdicts.
type tally struct{ tools, exact, valid, invalid, whole, unusable int }

// score is the share of tools whose signature is exact, in percent.
func (t *tally) score() float64 { return 100 * float64(t.exact) / float64(max(t.tools, 1)) }

// count checks tools and hands each verdict on.
func count(tools []tool.Spec, each func(name string, v *verdict, text string)) *tally {
	t := &tally{}
	for _, spec := range tools {
		text, err := signature(spec)
		v := &verdict{}
		if err != nil {
			v.faults = []string{err.Error()}
		} else {
			v = check(spec, text)
		}
		t.add(v)
		each(spec.Name, v, text)
	}
	return t
}

func (t *tally) add(v *verdict) {
	t.tools++
	if len(v.faults) == 0 {
		t.exact++
	}
	if v.unusable != nil {
		t.unusable++
	}
	for _, j := range []*judged{v.input, v.output} {
		if j == nil {
			continue
		}
		t.whole += j.whole
		for _, s := range j.samples {
			if s.valid {
				t.valid++
			} else {
				t.invalid++
			}
		}
	}
}
