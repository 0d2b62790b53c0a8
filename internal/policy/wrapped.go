package policy

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A wrapper is a command that runs the one which follows its own options.
type wrapper struct {
	valued string // its one-letter options with a value
	long   string // its long ones with a value that may be the next word
	skip   int    // so many operands come before the command
	clear  bool   // it changes nothing in what the command does, so that the command alone counts
}

// known are the wrappers of which it is known where the command begins. With the
// others, a rule that allows them allows what they run.
var known = map[string]wrapper{
	"timeout": {valued: "ks", long: "--kill-after --signal", skip: 1, clear: true}, "nice": {valued: "n", long: "--adjustment", clear: true}, "stdbuf": {valued: "ioe", long: "--input --output --error", clear: true}, "time": {valued: "fo"},
	"command": {clear: true}, "builtin": {}, "exec": {valued: "a"}, "nohup": {}, "setsid": {}, "ionice": {valued: "cnpPu", long: "--class --classdata"}, "chrt": {skip: 1},
	"sudo": {valued: "ugCDhpRrtTU", long: "--user --group --chdir --chroot --close-from --host --prompt --role --type --other-user --command-timeout"}, "doas": {valued: "uC"}, "env": {valued: "uCS", long: "--chdir --unset --split-string"}, "xargs": {valued: "aEeIiLlnPsd", long: "--arg-file --delimiter --max-args --max-procs --max-chars"}, "busybox": {}, "toybox": {},
	"taskset": {skip: 1}, "strace": {valued: "abeEIoOpPsSuX"}, "ltrace": {valued: "aeEFlnopPsuw"}, "chroot": {skip: 1}, "flock": {valued: "wE", skip: 1},
	"unshare": {}, "fakeroot": {}, "caffeinate": {valued: "tw"}, "eatmydata": {}, "xvfb-run": {valued: "efnpsw"}, "parallel": {valued: "jnNIaLdP"},
	"watch": {valued: "n"}, "systemd-run": {valued: "pu"}, "setarch": {}, "rlwrap": {}, "unbuffer": {},
}

var assignment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*)=`)

// begins returns which words of a command are the commands that it runs: first
// and one behind the last.
func begins(words []word) (spans [][2]int) {
	name := filepath.Base(words[0].s)
	if name == "find" {
		for i, x := range words {
			switch x.s {
			case "-exec", "-execdir", "-ok", "-okdir":
				end := i + 1
				for end < len(words) && words[end].s != ";" && (words[end].s != "+" || words[end-1].s != "{}") {
					end++
				}
				if end > i+1 {
					spans = append(spans, [2]int{i + 1, end})
				}
			}
		}
		return spans
	}
	x, ok := known[name]
	if !ok || name == "command" && len(words) > 1 && strings.HasPrefix(words[1].s, "-") && strings.ContainsAny(words[1].s, "vV") {
		return nil // the last only says what there is
	}
	at, skip := 1, x.skip
	for ; at < len(words); at++ {
		s := words[at].s
		switch {
		case s == "--":
			at++
		case name == "env" && assignment.MatchString(s), name == "sudo" && assignment.MatchString(s):
			continue
		case len(s) > 1 && s[0] == '-' && (name != "nice" || strings.Trim(s[1:], "0123456789") != ""):
			if strings.HasPrefix(s, "--") {
				if slices.ContainsFunc(strings.Fields(x.long), func(long string) bool { return strings.HasPrefix(long, s) }) {
					at++
				}
			} else {
				if i := strings.IndexAny(s[1:], x.valued); x.valued != "" && i == len(s)-2 {
					at++ // its value is the next word
				}
			}
			continue
		case len(s) > 1 && s[0] == '-':
			continue
		}
		if skip == 0 {
			break
		}
		skip--
	}
	if at < len(words) {
		spans = append(spans, [2]int{at, len(words)})
	}
	return spans
}

// starts returns the words of a command that could be names of commands which run:
// the first, and those behind a command that runs others.
func starts(words []word) []int {
	at := []int{0}
	for next := 0; next < len(at) && len(at) < maxBehind; next++ {
		from := at[next]
		rest := words[from:]
		if spans := begins(rest); spans != nil {
			for _, span := range spans {
				at = append(at, from+span[0])
			}
			continue
		}
		name := filepath.Base(rest[0].s)
		if _, ok := known[name]; ok || name == "find" || !wrappers[name] {
			continue
		}
		for i := 1; i < min(len(rest), maxBehind); i++ {
			at = append(at, from+i)
		}
		break
	}
	return at
}

// wrapped judges the commands that a command runs, as commands of their own: a
// rule that allows every `timeout` or `find` does not allow what they run.
func (w *shellWalk) wrapped(a *act) {
	at, words, owner := 0, a.words, a
	for range maxBehind {
		spans := begins(words)
		for _, span := range spans {
			in := act{kind: actCommand, shell: true, words: words[span[0]:span[1]], owner: owner, at: at + span[0]}
			for _, x := range words[1:span[0]] {
				if m := assignment.FindStringSubmatch(x.s); m != nil && !isName(plainEnv, m[1]) {
					_, value, _ := strings.Cut(x.s, "=")
					w.commandVar(m[1], word{s: value, glob: x.glob})
					in.prefixed, in.why = true, "has "+show(m[1])+" set before it, which can change what it does"
				}
			}
			_, _, ok := w.readOnly(&in)
			in.harmless = ok && filepath.Base(words[0].s) != "parallel"
			w.acts = append(w.acts, in)
		}
		if len(spans) != 1 {
			return
		}
		at, words = at+spans[0][0], words[spans[0][0]:spans[0][1]]
	}
}

// clear says whether a command does nothing but run another that only reads, and
// returns that one.
func clear(words []word) []word {
	name := words[0].s
	x, ok := known[name]
	if !ok || !x.clear || len(words) < 2 {
		return nil
	}
	rest := words[1:]
	switch name {
	case "timeout":
		if len(rest) < 2 || !duration.MatchString(rest[0].s) {
			return nil
		}
		return rest[1:]
	case "nice":
		if rest[0].s == "-n" && len(rest) > 2 && isNumber(rest[1]) {
			rest = rest[2:]
		}
	}
	if strings.HasPrefix(rest[0].s, "-") {
		return nil
	}
	return rest
}

var duration = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[smhd]?$`)

// shellLine says whether a command is a shell that runs one line which is known,
// and does nothing else: the line was judged.
func shellLine(words []word) bool {
	if words[0].s != "sh" && words[0].s != "bash" || len(words) != 3 || words[2].computed() || strings.Contains(words[2].s, dynamic) {
		return false
	}
	return slices.Contains([]string{"-c", "-lc", "-ec", "-cl", "-ce", "-euc"}, words[1].s)
}

// findDirs returns the directories of a find, and the rest.
func findDirs(args []word) (dirs, rest []word) {
	for len(args) > 0 && (args[0].s == "-H" || args[0].s == "-L" || args[0].s == "-P") {
		args = args[1:]
	}
	for i, x := range args {
		if strings.HasPrefix(x.s, "-") || x.s == "(" || x.s == "!" {
			return args[:i], args[i:]
		}
	}
	return args, nil
}

const (
	findPlain  = " -print -print0 -empty -not ! -a -o -and -or ( ) -prune -depth -xdev -mount -daystart -ls -true -false -readable -writable -executable -quit -noleaf -nouser -nogroup "
	findValued = " -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -newer -perm -user -group -uid -gid -links -inum -printf -lname -ilname -samefile "
)

// findReads says whether find only lists, in these directories.
func findReads(args []word) (dirs []word, ok bool) {
	dirs, rest := findDirs(args)
	if len(args) > 0 && (args[0].s == "-L" || args[0].s == "-H") {
		return dirs, false
	}
	for i := 0; i < len(rest); i++ {
		s := " " + rest[i].s + " "
		switch {
		case rest[i].computed() || strings.Contains(rest[i].s, " "):
			return dirs, false
		case strings.Contains(findPlain, s):
		case strings.Contains(findValued, s):
			if i++; i == len(rest) || rest[i].computed() {
				return dirs, false
			}
		default:
			return dirs, false
		}
	}
	return dirs, true
}

// sedScript matches scripts of sed that only print, leave out and replace: of a
// few commands, and with nothing that could be read in two ways.
var sedScript = regexp.MustCompile(`^` + sedCommand + `(?:[;\n] ?` + sedCommand + `)*;?$`)

const (
	sedText    = `(?:[^/\\\n\[]|\\[^\n]|\[[^\]/\\\n\[]+\])*`
	sedAddress = `(?:[0-9]+|\$|/` + sedText + `/)`
	sedCommand = `(?:` + sedAddress + `(?:, ?(?:\+[0-9]+|` + sedAddress + `))?)?!?(?:[pdqD=]|s/` + sedText + `/` + sedText + `/[gpiI0-9]*|s\|[^|\\\n\[]*\|[^|\\\n\[]*\|[gpiI0-9]*|s#[^#\\\n\[]*#[^#\\\n\[]*#[gpiI0-9]*)`
)

// sedReads says whether sed only prints, and returns the files that it reads.
func sedReads(args []word) (files []word, ok bool) {
	script := false
	for i := 0; i < len(args); i++ {
		s := args[i].s
		switch {
		case s == "-e" && i+1 < len(args):
			i++
			if args[i].computed() || !sedScript.MatchString(args[i].s) {
				return nil, false
			}
			script = true
		case s == "--quiet" || s == "--regexp-extended" || len(s) > 1 && s[0] == '-' && strings.Trim(s[1:], "nErsuz") == "":
		case strings.HasPrefix(s, "-") && s != "-":
			return nil, false
		case !script:
			if args[i].computed() || !sedScript.MatchString(s) {
				return nil, false
			}
			script = true
		default:
			files = append(files, args[i])
		}
	}
	return files, script
}

// awkReads returns the files that awk reads, and says whether its program only
// computes and prints.
func awkReads(args []word) (files []word, ok bool) {
	ok = true
	script := false
	for i := 0; i < len(args); i++ {
		s := args[i].s
		switch {
		case !script && (s == "-F" || s == "-v"):
			i++
			ok = ok && i < len(args) && !args[i].computed()
		case !script && strings.HasPrefix(s, "-F"):
			ok = ok && !args[i].computed()
		case !script && strings.HasPrefix(s, "-"):
			ok = false
			if s == "-f" || s == "--file" {
				i++
				script = true
			}
		case !script:
			ok = ok && !args[i].computed() && !awkDoes.MatchString(s)
			script = true
		case strings.IndexByte(s, '=') > 0 && identifier.MatchString(s[:strings.IndexByte(s, '=')]) && !args[i].computed():
		default:
			files = append(files, args[i])
		}
	}
	return files, ok && script
}

// awkDoes matches what lets a program of awk run, read and write other things.
var awkDoes = regexp.MustCompile(`system|getline|close|fflush|[|>@]|ENVIRON|PROCINFO|ARGV|ARGC|/inet|include|load`)
