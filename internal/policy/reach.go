package policy

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// This file is about what a command reaches beyond the files that its words name:
// what lies below a directory, where a link leads that it makes, the file of a URL,
// and a file that stands in a line of program text.

// below notes that a directory which a command copies, packs, moves or links to
// takes all that is in it along, so that rules about these files speak of it.
func (w *shellWalk) below(x word, a *act) {
	paths, _ := w.operand(x, true)
	for _, path := range paths {
		if isDir(path) {
			w.acts = append(w.acts, act{kind: actRead, tool: searchTool, path: path, owner: a, harmless: true})
		}
	}
}

// links returns the words as ln understands them that stand for what it links to:
// the target of a symbolic link is looked up where the link is. What is done
// through a link counts as done to its target, also when the line makes the link
// itself or the link is a hard one, which nobody can tell later.
func (w *shellWalk) links(args, targets []word, link word) []word {
	symbolic, relative := false, false
	for _, x := range args {
		if strings.HasPrefix(x.s, "--") {
			symbolic, relative = symbolic || shortFor(x.s, "--symbolic"), relative || shortFor(x.s, "--relative")
		} else if strings.HasPrefix(x.s, "-") {
			symbolic, relative = symbolic || strings.Contains(x.s, "s"), relative || strings.Contains(x.s, "r")
		}
	}
	if !symbolic || relative || link.s == "" {
		return targets
	}
	dir := filepath.Dir(link.s)
	if dirs, _ := w.operand(link, true); slices.ContainsFunc(dirs, isDir) {
		dir = link.s
	}
	targets = slices.Clone(targets)
	for i, x := range targets {
		if !x.tilde && !filepath.IsAbs(x.s) {
			targets[i].s = dir + "/" + x.s
			targets[i].tilde = link.tilde
		}
	}
	return targets
}

// fetched notes the file that a URL names which curl or wget is given.
func (w *shellWalk) fetched(x word, a *act) {
	if len(x.s) < 5 || !strings.EqualFold(x.s[:5], "file:") {
		if strings.HasPrefix(x.s, dynamic) {
			w.unseenFile("fetches something that only turns out when it runs, which could be a file", a)
		}
		return
	}
	if x.computed() {
		w.unseenFile("fetches files that only turn out when it runs", a)
		return
	}
	path := x.s[5:]
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		path = rest[max(0, strings.IndexByte(rest, '/')):]
	}
	path, _, _ = strings.Cut(path, "#")
	path, _, _ = strings.Cut(path, "?")
	path, err := url.PathUnescape(path)
	if err != nil || strings.ContainsAny(path, "{}[]") { // which curl expands
		w.unseenFile("fetches files that only turn out when it runs", a)
		return
	}
	w.touches(actRead, word{s: path}, a, false)
}

// packed notes what tar takes from the directory that -C names, and the commands
// that it is given to run.
func (w *shellWalk) packed(options []option, operands []word, a *act) {
	for _, option := range options {
		switch value := option.value; option.name {
		case "C", "directory", "cd":
			for _, o := range operands {
				if !filepath.IsAbs(o.s) && !o.tilde {
					o.s, o.tilde = value.s+"/"+o.s, value.tilde
					w.touches(actRead, o, a, false)
					w.below(o, a)
				}
			}
		case "T", "files-from":
			w.unseenFile("gives tar files that stand in another one", a)
		case "F", "info-script", "new-volume-script", "to-command", "checkpoint-action", "rmt-command", "rsh-command":
			w.unseen("gives tar a command to run (%s)", option.name)
		case "I", "use-compress-program":
			if !compressors[strings.TrimSpace(value.s)] {
				w.unseen("gives tar a command to run (%s)", option.name)
			}
		}
	}
}

// compressors do nothing but what tar is for.
var compressors = map[string]bool{"gzip": true, "pigz": true, "bzip2": true, "lbzip2": true, "pbzip2": true, "xz": true, "pixz": true, "lz4": true, "zstd": true, "zstdmt": true, "brotli": true}

// languages are commands that run a text which they are given as an argument.
var languages = map[string]bool{
	"python": true, "python2": true, "python3": true, "perl": true, "ruby": true, "node": true, "nodejs": true, "deno": true, "bun": true,
	"php": true, "lua": true, "sqlite3": true, "tclsh": true, "Rscript": true, "osascript": true, "gdb": true, "docker": true, "podman": true,
}

const maxNamed = 64 // words in the text of a program that are looked at

// named returns what could be a path in the text of a program.
func named(text string) []string {
	parts := strings.FieldsFunc(text[:min(len(text), maxCommand)], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-~/+", r)
	})
	parts = slices.DeleteFunc(parts, func(s string) bool { return len(s) > 255 || !strings.ContainsAny(s, "./") || s == "." || s == "/" })
	return parts[:min(len(parts), maxNamed)]
}
