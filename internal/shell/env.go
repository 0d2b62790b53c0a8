package shell

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// DefaultSecrets lists the variables that carry the agent's own provider keys.
func DefaultSecrets() []string {
	var list []string
	for _, family := range []string{"OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "RESPONSES", "CAPSTAN"} {
		list = append(list, family+"_API_KEY", family+"_API_KEY_*", family+"_AUTH_TOKEN")
	}
	return list
}

// settings are set for every command, over the user's own: they keep programs
// from asking a person who is not there. What each does stands in
// docs/design/shell.md.
var settings = []string{
	"TERM=dumb",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GH_PAGER=cat", "BAT_PAGER=cat", "SYSTEMD_PAGER=cat", "AWS_PAGER=",
	"GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "SSH_ASKPASS_REQUIRE=never",
	"GIT_EDITOR=true", "GIT_SEQUENCE_EDITOR=" + sequenceEditor, "EDITOR=false", "VISUAL=false",
	"DEBIAN_FRONTEND=noninteractive", "PIP_NO_INPUT=1",
}

// gitSettings are git settings that come after what the user's environment
// already sets. A repository that only looks like one, lying among the files of
// a workspace, is not used, and a repository's own fsmonitor, a program, is not
// run: git starts it even for a look at the status.
func gitSettings(count string) []string {
	n, err := strconv.Atoi(count)
	if err != nil || n < 0 {
		n = 0
	}
	return []string{
		fmt.Sprintf("GIT_CONFIG_COUNT=%d", n+2),
		fmt.Sprintf("GIT_CONFIG_KEY_%d=safe.bareRepository", n), fmt.Sprintf("GIT_CONFIG_VALUE_%d=explicit", n),
		fmt.Sprintf("GIT_CONFIG_KEY_%d=core.fsmonitor", n+1), fmt.Sprintf("GIT_CONFIG_VALUE_%d=false", n+1),
	}
}

// sequenceEditor fails with words that name the way out: an editor that does
// nothing would let `git rebase -i` pass as done.
const sequenceEditor = `sh -c 'echo "` + sequenceMessage + `" >&2; exit 1'`

const sequenceMessage = "no person can edit the rebase list here"

// Environ gives the environment of a command: base without the variables that
// secrets match, with the settings that keep programs from waiting for a person
// and from writing anything but UTF-8 (BUG-EN-03). Of a name given twice the
// last counts. Entries without a name and with NUL bytes are dropped.
func Environ(base, secrets []string) []string {
	values := map[string]string{}
	var names []string
	set := func(entry string) {
		// The first byte may be '=': Windows keeps its drives' directories so.
		i := strings.IndexByte(entry[min(1, len(entry)):], '=')
		if i < 0 || strings.ContainsRune(entry, 0) {
			return
		}
		name := entry[:i+1]
		if _, old := values[name]; !old {
			names = append(names, name)
		}
		values[name] = entry
	}
	for _, entry := range base {
		set(entry)
	}
	for _, entry := range settings {
		set(entry)
	}
	for _, entry := range gitSettings(strings.TrimPrefix(values["GIT_CONFIG_COUNT"], "GIT_CONFIG_COUNT=")) {
		set(entry)
	}
	if values["PYTHONIOENCODING"] == "" {
		set("PYTHONIOENCODING=utf-8")
	}
	env := make([]string, 0, len(names)+2)
	for _, name := range names {
		if slices.Contains(lost, name) {
			continue
		}
		if !slices.ContainsFunc(secrets, func(pattern string) bool { return matches(pattern, name) }) {
			env = append(env, values[name])
		}
	}
	if runtime.GOOS != "windows" && locale(env) == "" {
		env = append(slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, "LANG=") }), "LANG=C.UTF-8")
	}
	return env
}

// lost are variables that would make cd go elsewhere than where it was judged
// to go.
var lost = []string{"PWD", "OLDPWD", "CDPATH"}

// locale gives what decides a command's character set.
func locale(env []string) string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := lookup(env, name); v != "" {
			return v
		}
	}
	return ""
}

func lookup(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if n, v, ok := strings.Cut(entry, "="); ok && n == name {
			return v
		}
	}
	return ""
}

// matches compares a name with a pattern that may begin or end with *. On
// Windows names have no case.
func matches(pattern, name string) bool {
	if runtime.GOOS == "windows" {
		pattern, name = strings.ToUpper(pattern), strings.ToUpper(name)
	}
	switch rest, ok := strings.CutSuffix(pattern, "*"); {
	case ok && strings.HasPrefix(rest, "*"):
		return strings.Contains(name, rest[1:])
	case ok:
		return strings.HasPrefix(name, rest)
	}
	if rest, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(name, rest)
	}
	return pattern == name
}
