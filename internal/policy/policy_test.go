package policy

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capstan/internal/sched"
	"capstan/internal/tool"
)

// A world is a workspace with something around it:
//
//	base/ws         a git work tree, the workspace
//	base/ws/sub     the working directory of some tests
//	base/outside    not in the workspace
//	base/spill      readable without asking
//	base/home       the home directory
//	base/link       a symbolic link to ws
//	ws/out          a symbolic link to ../outside
type world struct{ base, ws, outside, spill, home string }

func newWorld(t testing.TB) world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{base, filepath.Join(base, "ws"), filepath.Join(base, "outside"), filepath.Join(base, "spill"), filepath.Join(base, "home")}
	for _, d := range []string{"ws/.git/hooks", "ws/sub/deep", "ws/src", "ws/sub/bare", "ws/sub/repo/.git", "ws/sub/repo/x", "outside/dir", "spill", "home/notes"} {
		if err := os.MkdirAll(filepath.Join(base, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"ws/.git/HEAD", "ws/a.txt", "ws/.env", "ws/src/main.go", "ws/sub/.env", "ws/sub/bare/HEAD", "outside/x.txt", "home/notes/n.md"} {
		if err := os.WriteFile(filepath.Join(base, f), []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"link": "ws", "ws/out": "../outside", "ws/sub/lnk": "../../outside", "ws/dangling": "../outside/new.txt"} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// expand puts the world's directories into a text.
func (w world) expand(s string) string {
	return strings.NewReplacer("$WS", w.ws, "$OUT", w.outside, "$SPILL", w.spill, "$HOME", w.home, "$BASE", w.base).Replace(s)
}

func (w world) options(mode Mode) Options {
	return Options{Mode: mode, Dir: w.ws, Home: w.home, Readable: []string{w.spill}, Settings: "SETTINGS"}
}

// rules reads "allow A; deny B" into rules.
func (w world) rules(s string) []Rule {
	var out []Rule
	for part := range strings.SplitSeq(s, "; ") {
		if list, text, ok := strings.Cut(strings.TrimSpace(part), " "); ok {
			out = append(out, Rule{List: list, Text: w.expand(text), Origin: "test"})
		}
	}
	return out
}

type fake struct{ spec tool.Spec }

func (f fake) Spec() *tool.Spec { return &f.spec }
func (f fake) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	return tool.Text(""), nil
}

func entry(t testing.TB, name string, effect tool.Effect) *tool.Entry {
	t.Helper()
	var r tool.Registry
	if err := r.Add(fake{tool.Spec{Name: name, Description: "d", Effect: effect}}); err != nil {
		t.Fatal(err)
	}
	return r.Tools()[0]
}

// request makes a call from a short text: "read_file PATH", "sh COMMAND",
// "use TOOL", "fetch URL", "none TOOL", "wild TOOL".
func (w world) request(t testing.TB, text string) *sched.Request {
	t.Helper()
	verb, rest, _ := strings.Cut(w.expand(text), " ")
	req := &sched.Request{Call: &tool.Call{ID: "1", Name: verb, Args: json.RawMessage(`{}`), Source: tool.FromModel}}
	path := func() []string {
		p := rest
		if !filepath.IsAbs(p) {
			p = w.ws + "/" + p
		}
		p, err := resolve(p)
		if err != nil {
			t.Fatal(err)
		}
		return []string{p}
	}
	name, effect := verb, tool.EffectUnknown
	switch verb {
	case "read_file", "list_directory", "grep_search", "glob":
		effect = tool.EffectRead
		req.Access = tool.Access{Overlap: true, Reads: path()}
	case "write_file":
		effect = tool.EffectWrite
		req.Access = tool.Access{Writes: path()}
	case "edit":
		effect = tool.EffectWrite
		req.Access = tool.Access{Writes: path(), Reads: path()}
	case "sh":
		name, effect = shellTool, tool.EffectExec
		req.Call.Args, _ = json.Marshal(map[string]string{"command": rest})
	case "shin": // DIR COMMAND
		dir, command, _ := strings.Cut(rest, " ")
		name, effect = shellTool, tool.EffectExec
		req.Call.Args, _ = json.Marshal(map[string]string{"command": command, "directory": dir})
	case "use":
		name = rest
	case "fetch":
		name = "web_fetch"
		req.Call.Args, _ = json.Marshal(map[string]string{"url": rest})
	case "none":
		name, effect = rest, tool.EffectNone
	case "wild":
		name, effect = rest, tool.EffectRead
		req.Access = tool.Access{Outside: true}
	case "vague":
		name, effect = rest, tool.EffectRead
	case "relative":
		name, effect = "write_file", tool.EffectWrite
		req.Access = tool.Access{Writes: []string{rest}}
	default:
		t.Fatalf("unknown call %q", text)
	}
	req.Call.Name, req.Entry = name, entry(t, name, effect)
	return req
}

var decisions = map[sched.Decision]string{sched.Allow: "allow", sched.Ask: "ask", sched.Deny: "deny", sched.Abstain: "abstain"}

// TestDecide is the table of what runs, asks and is denied. The fourth column
// is what decided: a part of Verdict.By, "" for the mode.
//
// S0-010, S0-163 (nested calls are judged by the same table, see
// TestNestedIsJudgedAlike). BUG-PP-01, BUG-PP-03, BUG-SP-01, BUG-SP-03,
// BUG-SP-05, BUG-SP-06, BUG-SP-08, BUG-SP-10.
func TestDecide(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		mode              Mode
		rules, call, want string
		by                string
	}{
		// Modes without rules.
		{Plan, "", "read_file a.txt", "allow", ""},
		{Plan, "", "read_file $OUT/x.txt", "ask", ""},
		{Plan, "", "write_file a.txt", "deny", ""},
		{Plan, "", "edit a.txt", "deny", ""},
		{Plan, "", "sh ls -la", "allow", ""},
		{Plan, "", "sh make", "deny", ""},
		{Plan, "", "use mcp__s__t", "deny", ""},
		{Plan, "", "none todo_write", "allow", ""},
		{Plan, "", "wild web_search", "ask", ""},
		{Plan, "allow Edit", "write_file a.txt", "deny", ""},
		{Plan, "allow Bash", "sh make", "deny", ""},
		{Plan, "allow Read(/$OUT/**)", "read_file $OUT/x.txt", "allow", "Read("},
		{Plan, "ask Read(.env)", "read_file .env", "ask", "Read(.env)"},
		{Default, "", "read_file a.txt", "allow", ""},
		{Default, "", "read_file new/not/there", "allow", ""},
		{Default, "", "list_directory .", "allow", ""},
		{Default, "", "grep_search src", "allow", ""},
		{Default, "", "write_file a.txt", "ask", ""},
		{Default, "", "edit a.txt", "ask", ""},
		{Default, "", "sh make", "ask", ""},
		{Default, "", "use mcp__s__t", "ask", ""},
		{Default, "", "none exec", "allow", ""},
		{Default, "", "vague thing", "ask", ""},
		{Default, "", "wild thing", "ask", ""},
		{Default, "", "relative a.txt", "ask", ""},
		{AutoEdit, "", "write_file a.txt", "allow", ""},
		{AutoEdit, "", "edit sub/deep/new.go", "allow", ""},
		{AutoEdit, "", "sh make", "ask", ""},
		{AutoEdit, "", "use mcp__s__t", "ask", ""},
		{AutoEdit, "", "relative a.txt", "ask", ""},
		{Yolo, "", "write_file $OUT/x.txt", "allow", ""},
		{Yolo, "", "sh rm -rf /", "allow", ""},
		{Yolo, "", "sh if (", "allow", ""},
		{Yolo, "", "use mcp__s__t", "allow", ""},
		{Yolo, "", "write_file .git/hooks/pre-commit", "allow", ""},

		// Outside the workspace, also through links.
		{Default, "", "read_file $OUT/x.txt", "ask", ""},
		{Default, "", "read_file out/x.txt", "ask", ""},
		{AutoEdit, "", "write_file out/new.txt", "ask", ""},
		{AutoEdit, "", "write_file dangling", "ask", ""},
		{AutoEdit, "", "write_file out/../ws/a.txt", "allow", ""},
		{AutoEdit, "", "write_file out/../x.txt", "ask", ""},
		{AutoEdit, "", "write_file $WS/../wsx/a.txt", "ask", ""},
		{AutoEdit, "", "write_file $WSother", "ask", ""},
		{AutoEdit, "", "write_file $BASE/link/a.txt", "allow", ""},
		{Default, "", "read_file $BASE/link/a.txt", "allow", ""},
		{Default, "", "read_file $SPILL/call_1.txt", "allow", ""},
		{AutoEdit, "", "write_file $SPILL/call_1.txt", "ask", ""},
		{Default, "deny Read", "read_file $SPILL/call_1.txt", "deny", "Read"},

		// What changes what runs later.
		{AutoEdit, "", "write_file .git/config", "ask", ""},
		{AutoEdit, "", "edit .git/hooks/pre-commit", "ask", ""},
		{AutoEdit, "", "write_file sub/.git/config", "ask", ""},
		{AutoEdit, "", "write_file .GIT/config", "ask", ""},
		{AutoEdit, "", "write_file .capstan/settings.json", "ask", ""},
		{AutoEdit, "", "write_file .mcp.json", "ask", ""},
		{AutoEdit, "", "write_file .bashrc", "ask", ""},
		{AutoEdit, "", "write_file sub/.envrc", "ask", ""},
		{AutoEdit, "", "write_file .gitignore", "allow", ""},
		{AutoEdit, "allow Edit", "write_file .git/config", "ask", ""},
		{AutoEdit, "allow Edit(/**)", "write_file .git/config", "ask", ""},
		{AutoEdit, "allow Edit(/.git/config)", "write_file .git/config", "allow", "Edit"},
		{Default, "", "read_file .git/config", "allow", ""},

		// Deny beats ask beats allow, whatever the order and the mode.
		{Default, "allow Edit; ask Edit; deny Edit", "write_file a.txt", "deny", "permissions.deny"},
		{Default, "allow Edit; ask Edit", "write_file a.txt", "ask", "permissions.ask"},
		{Default, "allow Edit", "write_file a.txt", "allow", "permissions.allow"},
		{Yolo, "deny Edit", "write_file a.txt", "deny", "permissions.deny"},
		{Yolo, "ask Edit", "write_file a.txt", "ask", "permissions.ask"},
		{Yolo, "ask mcp__s", "use mcp__s__t", "ask", "permissions.ask"},
		{Yolo, "deny none_tool; deny exec", "none exec", "deny", "exec"},

		// Tool names, aliases, patterns.
		{Default, "allow mcp__s", "use mcp__s__t", "allow", "mcp__s"},
		{Default, "allow mcp__s", "use mcp__sx__t", "ask", ""},
		{Default, "allow mcp__s__*", "use mcp__s__t", "allow", "mcp__s__*"},
		{Default, "allow mcp__s__get_*", "use mcp__s__get_x", "allow", "mcp__s__get_*"},
		{Default, "allow mcp__s__get_*", "use mcp__s__set_x", "ask", ""},
		{Default, "allow mcp__*__get_*", "use mcp__s__get_x", "allow", "mcp__*"},
		{Default, "deny *", "read_file a.txt", "deny", "*"},
		{Default, "allow mcp__s__t", "use mcp__s__t2", "ask", ""},
		{Default, "allow mcp__s__t", "use mcp__s__T", "ask", ""},
		{Default, "deny Read", "grep_search src", "deny", "Read"},
		{Default, "deny Read", "list_directory src", "deny", "Read"},
		{Default, "deny read_file", "grep_search src", "allow", ""},
		{Default, "deny ReadFileTool", "read_file a.txt", "deny", "ReadFileTool"},
		{Default, "deny LS", "list_directory src", "deny", "LS"},
		{Default, "deny Grep", "grep_search src", "deny", "Grep"},
		{Default, "deny Glob", "glob src", "deny", "Glob"},
		{AutoEdit, "deny Write", "write_file a.txt", "deny", "Write"},
		{AutoEdit, "deny Write", "edit a.txt", "allow", ""},
		{AutoEdit, "deny Edit", "write_file a.txt", "deny", "Edit"},
		{Default, "allow Edit", "write_file $OUT/x.txt", "ask", ""},
		{Default, "allow Bash", "sh make", "allow", "Bash"},
		{Default, "allow ShellTool", "sh make", "allow", "ShellTool"},
		{Default, "allow run_shell_command", "sh for i in 1; do x; done", "allow", "run_shell_command"},
		{Default, "allow Bash(*)", "sh make", "allow", "Bash(*)"},
		{Default, "allow WebFetch(domain:go.dev)", "fetch https://pkg.go.dev/x", "allow", "WebFetch"},
		{Default, "allow WebFetch(domain:go.dev)", "fetch https://evilgo.dev/x", "ask", ""},
		{Default, "allow WebFetch(domain:go.dev)", "fetch https://go.dev@evil.test/", "ask", ""},
		{Default, "deny WebFetch(domain:go.dev)", "fetch https://GO.dev.:443/", "deny", "WebFetch"},
		{Default, "deny WebFetch(domain:Go.dev.)", "fetch https://go.dev/", "deny", "WebFetch"},
		{Yolo, "deny WebFetch(domain:10.0.0.5)", "fetch http://[::ffff:10.0.0.5]/", "deny", "WebFetch"},
		{Yolo, "deny WebFetch(domain:10.0.0.5)", "fetch http://[::FFFF:a00:5]/", "deny", "WebFetch"},
		{Yolo, "deny WebFetch(domain:2001:db8::1)", "fetch http://[2001:DB8:0::0:1]/", "deny", "WebFetch"},
		{Yolo, "deny WebFetch(domain:[2001:db8:0::1])", "fetch http://[2001:db8::1]/", "deny", "WebFetch"},
		{Yolo, "deny WebFetch(domain:0.0.1)", "fetch http://127.0.0.1/", "allow", ""},
		{Plan, "", "fetch https://go.dev/", "ask", ""},
		{Plan, "allow WebFetch(domain:go.dev)", "fetch https://go.dev/", "allow", "WebFetch"},
		{Plan, "deny WebFetch(domain:go.dev)", "fetch https://go.dev/", "deny", "WebFetch"},
		{Plan, "", "use mcp__web__fetch", "deny", ""},

		// Paths.
		{Default, "deny Read(.env)", "read_file .env", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "read_file sub/.env", "deny", "Read(.env)"},
		{Default, "deny Read(./.env)", "read_file sub/.env", "allow", ""},
		{Default, "deny Read(/.env)", "read_file .env", "deny", "Read(/.env)"},
		{Default, "deny Read(**/.env)", "read_file sub/.env", "deny", "Read"},
		{Default, "deny Read(*.go)", "read_file src/main.go", "deny", "Read(*.go)"},
		{Default, "deny Read(src)", "read_file src/main.go", "deny", "Read(src)"},
		{Default, "deny Read(src/)", "read_file src/main.go", "deny", "Read(src/)"},
		{Default, "deny Read(src/**)", "read_file src/main.go", "deny", "Read(src/**)"},
		{Default, "deny Read(src/*.ts)", "read_file src/main.go", "allow", ""},
		{Default, "deny Read(s?c/main.[a-z]o)", "read_file src/main.go", "deny", "Read"},
		{Default, "deny Read(/$OUT/**)", "read_file out/x.txt", "deny", "Read"},
		{Default, "deny Read(/out/**)", "read_file $OUT/x.txt", "deny", "Read"},
		{Default, "deny Read(/$BASE/link/a.txt)", "read_file a.txt", "deny", "Read"},
		{Default, "allow Read(~/notes/**)", "read_file $HOME/notes/n.md", "allow", "Read"},
		{Default, "allow Read(~/notes/**)", "read_file $HOME/other", "ask", ""},
		{Default, "allow Read(../outside/x.txt)", "read_file $OUT/x.txt", "allow", "Read"},
		{Default, "allow Edit(/src/**)", "edit src/main.go", "allow", "Edit"},
		{Default, "allow Edit(/src/**)", "edit a.txt", "ask", ""},
		{Default, "allow Edit(/$OUT/x.txt)", "edit $OUT/x.txt", "allow", "Edit"},
		{Default, "deny Read(.env)", "edit .env", "deny", "Read(.env)"},
		{Default, "deny Edit(.env)", "read_file .env", "allow", ""},
		{Default, "deny Read(a\\*.txt)", "read_file a.txt", "allow", ""},
		{Default, "deny Read(.env)", "grep_search .", "deny", "Read(.env)"},
		{Default, "deny Read(/src/**)", "grep_search sub", "allow", ""},
		{Default, "ask Read(.env)", "grep_search .", "ask", "Read(.env)"},
		{Default, "deny Read(.env)", "list_directory .", "allow", ""},

		// Commands that are known to read only.
		{Default, "", "sh pwd", "allow", ""},
		{Default, "", "sh ls -la src", "allow", ""},
		{Default, "", "sh cat a.txt src/main.go", "allow", ""},
		{Default, "", "sh cat $OUT/x.txt", "ask", ""},
		{Default, "", "sh cat out/x.txt", "ask", ""},
		{Default, "", "sh cat ~/notes/n.md", "ask", ""},
		{Default, "", "sh cat '~/notes/n.md'", "allow", ""},
		{Default, "", "sh cat *.txt", "allow", ""},
		{Default, "", "sh cat {a,b}", "ask", ""},
		{Default, "", "sh cat $FILE", "ask", ""},
		{Default, "", "sh cat $'a.txt'", "ask", ""},
		{Default, "", `sh c\at "a".txt`, "allow", ""},
		{Default, "", "sh ls -la | head -5 && git status", "allow", ""},
		{Default, "", "sh git log --oneline -5", "allow", ""},
		{Default, "", "sh git --no-pager diff --stat", "allow", ""},
		{Default, "", "sh git diff --output=x", "ask", ""},
		{Default, "", "sh git diff --outp=x", "ask", ""},
		{Default, "", "sh git diff --no-index $OUT/x.txt a.txt", "ask", ""},
		{Default, "", "sh git -c core.pager=x log", "ask", ""},
		{Default, "", "sh git push", "ask", ""},
		{Default, "", "sh git", "ask", ""},
		{Default, "", "sh grep -rn foo src", "allow", ""},
		{Default, "", "sh grep -rf /etc/passwd src", "ask", ""},
		{Default, "", "sh wc --files0-from=x", "ask", ""},
		{Default, "", "sh tail -f a.txt", "ask", ""},
		{Default, "", "sh date -s now", "ask", ""},
		{Default, "", "sh PATH=. ls", "ask", ""},
		{Default, "", "sh PATH=.; ls", "ask", ""},
		{Default, "", "sh ls() { rm x; }; ls", "ask", ""},
		{Default, "", "sh alias ls=rm; ls", "ask", ""},
		{Default, "", "sh echo $(ls)", "allow", ""},
		{Default, "", `sh echo "v$(ls)"`, "allow", ""},
		{Default, "", "sh echo \"$(rm x)\"", "ask", ""},
		{Default, "", "sh cat <(rm x)", "ask", ""},
		{Default, "", "sh echo ${x:-$(rm x)}", "ask", ""},
		{Default, "", "sh echo ${x@P}", "ask", ""},
		{Default, "", "sh echo $((a[$(rm x)]))", "ask", ""},
		{Default, "", `sh echo "v${x@P}"`, "ask", ""},
		{Default, "", `sh echo "v$SECRET"`, "ask", ""},
		{Default, "", "sh cat <<EOF\n$SECRET\nEOF", "ask", ""},
		{Default, "", "sh cat <<< $SECRET", "ask", ""},
		{Default, "", "sh cat <<EOF\nplain\nEOF", "allow", ""},
		{Default, "", "sh cd sub && git status", "ask", ""},
		{Default, "", "sh echo /root/*", "ask", ""},
		{Default, "", "sh echo a b '*'", "allow", ""},
		{Default, "", "sh cd sub/bare && git status", "ask", ""},
		{Default, "", "sh cd sub/repo && git log", "ask", ""},
		{Default, "", "shin sub/repo/x git log", "ask", ""},
		// The repository is looked at before the line runs, so git is harmless
		// only in the root and in a line that changes nothing.
		{AutoEdit, "", "sh echo 'ref: refs/heads/x' > sub/HEAD && cd sub && git status -s", "ask", ""},
		{AutoEdit, "", "sh md5sum a.txt; cd sub && git status -s", "ask", ""},
		{AutoEdit, "", "shin sub git status -s", "ask", ""},
		{AutoEdit, "", "sh echo x >> cfg; git status -s", "ask", ""},
		{AutoEdit, "", "sh git status -s; echo x >> cfg", "ask", ""},
		{AutoEdit, "allow Bash(make)", "sh make && git status", "ask", ""},
		{AutoEdit, "allow Bash(make); allow Bash(git status)", "sh make && git status", "allow", ""},
		{AutoEdit, "", "sh git status -s 2>/dev/null | head -5", "allow", ""},
		{Default, "", "sh diff a.txt .env", "allow", ""},
		{Default, "", "sh diff src sub", "ask", ""},
		{Default, "", "sh grep -R x .", "ask", ""},
		{Default, "deny Read(.env)", "sh grep -rn SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh ls | grep foo", "allow", ""},
		{Default, "deny Read(/.env)", "sh grep -rn foo src", "allow", ""},
		{Default, "", `sh echo "v$((a[$(rm x)]))"`, "ask", ""},
		{Default, "allow Bash(make:*)", "sh PATH=.; make", "ask", ""},
		{Default, "", "sh ls &", "ask", ""},
		{Default, "", "sh ls; rm x", "ask", ""},
		{Default, "", "sh ls\nrm x", "ask", ""},
		{Default, "", "sh (ls)", "allow", ""},
		{Default, "", "sh ! ls", "allow", ""},
		{Default, "", "sh if (", "ask", ""},
		{Default, "", "sh # nothing", "ask", ""},
		{Default, "", "sh cd sub && ls && cat .env", "allow", ""},
		{Default, "", "sh cd .. && cat outside/x.txt", "ask", ""},
		{Default, "", "sh cd out; ls", "ask", ""},
		{Default, "", "sh cd sub; cat ../out/x.txt", "ask", ""},
		{Default, "", "sh cd sub && cat lnk/x.txt", "ask", ""},
		{Default, "", "sh (cd sub); cat lnk/x.txt", "ask", ""},
		{Default, "", "sh cd -; ls", "ask", ""},
		{Default, "allow Bash(pushd:*)", "sh pushd /etc; cat passwd", "ask", ""},
		{Default, "", "shin $OUT ls", "ask", ""},
		{Default, "", "shin sub cat deep/x", "allow", ""},
		{Default, "", "shin out ls", "ask", ""},
		{Plan, "", "sh ls > x", "deny", ""},
		{Plan, "", "sh ls 2>/dev/null", "allow", ""},

		// Redirects are writes to their path.
		{Default, "", "sh ls 2>&1 >/dev/null", "allow", ""},
		{Default, "", "sh ls > list.txt", "ask", ""},
		{AutoEdit, "", "sh ls > list.txt", "allow", ""},
		{AutoEdit, "", "sh ls >> .git/hooks/post-commit", "ask", ""},
		{AutoEdit, "", "sh ls > $OUT/list.txt", "ask", ""},
		{AutoEdit, "", "sh ls > out/list.txt", "ask", ""},
		{AutoEdit, "", "sh ls >| $X", "ask", ""},
		{AutoEdit, "", "sh ls >&2file", "allow", ""},
		{Default, "", "sh ls >&2file", "ask", ""},
		{AutoEdit, "", "sh ls &> out/l", "ask", ""},
		{AutoEdit, "", "sh cat <> out/l", "ask", ""},
		{AutoEdit, "deny Edit(list.txt)", "sh ls > list.txt", "deny", "Edit"},
		{AutoEdit, "deny Write(list.txt)", "sh ls > list.txt", "deny", "Write"},
		{Default, "allow Bash(git show:*)", "sh git show HEAD > out.txt", "ask", ""},
		{Default, "allow Bash(git show:*)", "sh git show HEAD --ext-diff", "allow", ""},
		{Default, "allow Bash(git show:*)", "sh git show HEAD &", "ask", ""},
		{Default, "allow Bash(git show:*); allow Edit(/o.txt)", "sh git show HEAD --ext-diff > o.txt", "allow", ""},
		{Default, "", "sh cat < $OUT/x.txt", "ask", ""},
		{Default, "", "sh cat < a.txt", "allow", ""},
		{Default, "", "sh cat <<< hello", "allow", ""},
		{Default, "", "sh cat <<EOF\n$(rm x)\nEOF", "ask", ""},
		{Default, "", "sh cat <<'EOF'\n$(rm x)\nEOF", "allow", ""},

		// Rules for commands.
		{Default, "allow Bash(npm run test:*)", "sh npm run test", "allow", "npm"},
		{Default, "allow Bash(npm run test:*)", "sh npm run test -- -x", "allow", "npm"},
		{Default, "allow Bash(npm run test:*)", "sh npm run tester", "ask", ""},
		{Default, "allow Bash(npm run test:*)", "sh npm run 'test x'", "ask", ""},
		{Default, "allow Bash(npm run test *)", "sh npm run test -- -x", "allow", "npm"},
		{Default, "allow Bash(npm run test)", "sh npm run test -- -x", "ask", ""},
		{Default, "allow Bash(npm run test)", "sh npm  run \"test\"", "allow", "npm"},
		{Default, "allow Bash(git * main)", "sh git push origin main", "allow", "git"},
		{Default, "allow Bash(git * main)", "sh git push origin main2", "ask", ""},
		{Default, "allow Bash(rm *.o)", "sh rm *.o", "allow", "rm"},
		{Default, "allow Bash(npm:*)", "sh ./npm x", "ask", ""},
		{Default, "allow Bash(npm:*)", "sh FOO=1 npm x", "ask", ""},
		{Default, "allow Bash(npm:*)", "sh npm x $(rm y)", "ask", ""},
		{Default, "allow Bash(npm:*); allow Bash(rm:*)", "sh npm x $(rm y)", "allow", "npm"},
		{Default, "allow Bash(*:*)", "sh $X y", "ask", ""},
		{Default, "allow Bash(git log:*)", "sh git log -1 && touch pwned.txt", "ask", ""},
		{Default, "allow Bash(git log:*)", "sh git log -1 | sh", "ask", ""},
		{Default, "allow Bash(cat:*)", "sh cat $OUT/x.txt", "ask", ""},
		{Default, "allow Bash(cat $OUT/x.txt)", "sh cat $OUT/x.txt", "allow", "cat"},
		{Default, "allow Bash(cat:*); deny Read(/$OUT/**)", "sh cat $OUT/x.txt", "deny", "Read"},
		{Default, "deny Read(.env)", "sh cat .env", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -r x .", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh cat sub/../.env", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh FOO=1 cat .env", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh X=1; cat .env", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh cat --unknown .env", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh tail -f .env", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh cat $X .env", "deny", "Read(.env)"},

		// The value of an option is no path and no pattern.
		{Default, "deny Read(.env)", "sh grep -rA 1 SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -rh -m 1 SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -rm1 SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -r -C 2 -B1 SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -r -e SECRET", "deny", "Read(.env)"},
		{Default, "deny Read(/.env)", "sh grep -re SECRET src", "allow", ""},
		{Default, "deny Read(/.env)", "sh grep -rA 1 SECRET src", "allow", ""},
		{Default, "deny Read(.env)", "sh grep -e src .env", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh grep -r -C SECRET .", "deny", "Read(.env)"},
		{Default, "", "sh grep -C x a.txt", "ask", ""},
		{Default, "", "sh grep -A", "ask", ""},
		{Default, "", "sh grep -A $X y a.txt", "ask", ""},
		{Default, "", "sh grep $X a.txt", "ask", ""},
		{Default, "", "sh grep *.txt", "ask", ""},
		{Default, "", "sh grep /etc/passwd a.txt", "allow", ""},
		{Default, "", "sh grep x /etc/passwd", "ask", ""},
		{Default, "", "sh grep -e x /etc/passwd", "ask", ""},
		{Default, "", "sh head -n 5 a.txt", "allow", ""},
		{Default, "", "sh grep /etc/hostname -e .", "ask", ""},
		{Default, "", "sh grep /etc/hostname -ie.", "ask", ""},
		{Default, "", "sh grep /etc/hostname --regexp=.", "ask", ""},
		{Default, "deny Read(.env)", "sh grep .env -e .", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep .env -ne.", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep .env --reg=.", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep .env -f a.txt", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep -f.env a.txt", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep -vf .env a.txt", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep --file=.env a.txt", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep -R x", "deny", "Read(.env)"},
		{Yolo, "deny Read(.env)", "sh grep -d recurse x .", "deny", "Read(.env)"},
		{Default, "", "sh grep a.txt -e .", "allow", ""},
		{Default, "deny Read(.env)", "sh head -99c .env", "deny", "Read(.env)"},
		{Default, "deny Read(.env)", "sh tail -99c .env", "deny", "Read(.env)"},
		{Default, "", "sh head -99c /etc/hostname", "ask", ""},
		{Default, "", "sh tail -9c a.txt", "ask", ""},
		{Default, "", "sh head -99 a.txt", "allow", ""},
		{Default, "", "sh ls -1a", "allow", ""},
		{Default, "", "sh git log -n 5", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh rm -rf x", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "$(rm -rf ./tmpdir)"`, "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh ls && { rm x; }", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh for i in 1; do rm x; done", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh /bin/rm x", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh \rm x`, "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh sudo -u me rm x", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh find . -exec rm {} ;", "deny", "rm"},
		{Yolo, "deny Bash(curl:*)", `sh eval "cu""rl example.test"`, "deny", "curl"},
		{Yolo, "deny Bash(curl:*)", "sh sh -c 'curl example.test'", "deny", "curl"},
		{Yolo, "deny Bash(curl:*)", "sh env -i bash -lc 'curl example.test'", "deny", "curl"},
		{Yolo, "deny Bash(curl:*)", "sh timeout 5 curl example.test", "deny", "curl"},
		{Yolo, "deny Bash(curl:*)", `sh eval "$X"`, "ask", "curl"},
		{Yolo, "deny Bash(curl:*)", "sh if (", "ask", "curl"},
		{Yolo, "deny Bash(curl:*)", "sh FOO=1 curl x", "deny", "curl"},
		{Yolo, "deny Bash(rm)", "sh rm -rf x", "allow", ""},

		// What the parser and bash read differently.
		{Plan, "", "sh echo a \\\r\ntouch x", "deny", ""},
		{Plan, "", "sh echo a\r#; touch x", "deny", ""},
		{Plan, "", "sh cat a.txt\r\n", "deny", ""},
		{Plan, "", "sh echo a # x \\\ntouch x", "deny", ""},
		{Plan, "", "sh cat <<E\na\nE\\\n\ntouch x\nE\n", "deny", ""},
		{Plan, "", "sh cat <<\"E\"#; touch x\nE\n", "deny", ""},
		{Plan, "", "sh cat <<'E'#; touch x\nE\n", "deny", ""},
		{Plan, "", "sh cat <<\\E#; touch x\nE\n", "deny", ""},
		{Plan, "", "sh ls \\\n-la", "allow", ""},
		{Plan, "", "sh cat <<'E'\n# a comment\nE\n", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh echo a\r#; rm x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo hi # \\\nrm x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash -c 'echo a\r#; rm x'", "ask", "rm"},

		// Redirects whose paths are known, and those whose are not.
		{Yolo, "deny Edit(keep)", "sh echo x > keep", "deny", "keep"},
		{Yolo, "deny Edit(keep)", "sh set -e; echo x > keep", "deny", "keep"},
		{Yolo, "deny Edit(keep)", "sh X=1; echo x > keep", "deny", "keep"},
		{Yolo, "deny Edit(keep)", "sh if true; then echo x; fi > keep", "deny", "keep"},
		{Yolo, "deny Edit(keep)", "sh for i in 1; do echo x > keep; done", "deny", "keep"},
		{Yolo, "deny Edit(keep)", "sh echo x > kee?", "ask", "keep"},
		{Yolo, "deny Edit(keep)", "sh echo x > $PWD/keep", "ask", "keep"},
		{Yolo, "", "sh echo x > kee?", "allow", ""},
		{Yolo, "deny Read(.env)", "sh read l < .env; echo $l", "deny", ".env"},
		{Yolo, "deny Read(.env)", "sh export A=1; cat < .env", "deny", ".env"},
		{Yolo, "deny Read(.env)", "sh while read l; do echo $l; done < .env", "deny", ".env"},
		{Yolo, "deny Read(.env)", "sh cat <>.env", "deny", ".env"},
		{Yolo, "ask Edit(keep)", "sh set -e; echo y > keep", "ask", "keep"},

		// Options of a shell, and what else takes a line.
		{Yolo, "deny Bash(rm:*)", "sh bash -c -- 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash -cx 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash -c -e 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash --norc --rcfile f -o pipefail +O extglob -ec 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash -co pipefail 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh sudo -u bash bash -c 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash -c 'ls' 'rm x'", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh bash script.sh -c 'rm x'", "allow", ""},
		{Yolo, "deny Bash(rm:*)", `sh trap "rm x" EXIT`, "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh trap -- "rm x" EXIT`, "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh trap - EXIT`, "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh flock l rm x", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh flock l -c 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh su -c'rm x' me", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh su me --command='rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh script -qc 'rm x' f", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env -S 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh watch -n 5 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh eval -- 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh builtin eval 'rm x'", "deny", "rm"},
		{Yolo, "deny Bash(git push:*)", "sh git -C sub --no-pager push", "deny", "git push"},
		{Yolo, "deny Bash(git push:*)", "sh git -c a.b=c pull", "ask", "git push"},

		{Yolo, "deny Bash(rm:*)", "sh env -vS'rm x/f'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env -iS 'A=1 rm x/f'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env -S '-i rm x/f'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env --split='rm x/f'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh env -S'r\cm x/f'`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env -S'${X} x/f'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh script -qc'rm x' f", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh setpriv rm x/f", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh ssh-agent rm x/f", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh sg me 'ls' -c 'rm x/f'", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh [[ -v 'a[$(rm x/f)]' ]]", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh test -v 'a[$(rm x/f)]'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh test -v 'a[`rm x/f`]'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh test -v "a[\$(rm x/f)]"`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh test -v a[\$\(rm\ x/f\)]`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh let 'a[$(rm x/f)]=1'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh read 'a[$(rm x/f)]' < a.txt", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh printf -v 'a[$(rm x/f)]' x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh read x < a.txt; test -v "$x"`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh compgen -C 'rm x/f'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh complete -C 'rm x/f' y", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git -c alias.q='!rm x/f' q", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git --config-env=alias.q=X q", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh sudo git --config-env alias.q=X q", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git config alias.q '!rm x/f'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git rebase -x 'rm x/f' main", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git submodule foreach 'rm x/f'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh git bisect run rm x/f", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh cat > n.md <<'EOF'\nrun `make` and $(pwd)\nEOF", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh git config --get user.name", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh test -v HOME && printf '%s' \"$HOME\"", "allow", ""},
		{Yolo, "", "sh test -v 'a[$(rm x/f)]'", "allow", ""},

		// What only turns out when it runs could be what a rule forbids.
		{Yolo, "deny Bash(rm:*)", "sh $(echo rm) x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh R=rm; $R x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh $'rm' x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh r? x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh {rm,x}", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh sudo $X y", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh env" + strings.Repeat(" A=1", maxBehind) + " rm x", "deny", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | bash`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | sudo sh -`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | bash -s a`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | bash /dev/stdin`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | sudo -s`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh echo "rm x" | su me`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh bash <<< "rm x"`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash <<EOF\nrm x\nEOF", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh bash <(echo rm x)", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh . /dev/stdin <<< 'rm x'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh source $X", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh trap $X EXIT", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", `sh bash -c "$X"`, "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo rm x | xargs env", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo rm x | xargs -I{} sh -c {}", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo rm x | xargs sh -c", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo rm x | xargs -I% %", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh shopt -s expand_aliases; alias x='rm y'", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh hash -p /bin/rm x; x y", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh x='a[$(rm y)]'; echo $((x))", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh export PS4='$(rm y)'; set -x", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh echo 'rm x' | at now", "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh " + nested(maxInner+1, "rm x"), "ask", "rm"},
		{Yolo, "deny Bash(rm:*)", "sh " + nested(maxInner, "rm x"), "deny", "rm"},
		{Yolo, "deny Bash(git push:*)", "sh git $X", "ask", "git push"},
		{Yolo, "deny Bash(git push:*)", "sh git pus?", "ask", "git push"},
		{Yolo, "deny Bash(git push:*)", "sh git -C sub $X", "ask", "git push"},
		{Yolo, "deny Bash(git push)", "sh git push $X", "ask", "git push"},
		{Yolo, "ask Bash(git push:*)", "sh $X", "ask", "git push"},
		{Default, "deny Bash(rm:*); allow Bash(bash:*)", "sh echo x | bash", "ask", "rm"},
		{Default, "allow Bash(echo:*); allow Bash(bash:*)", "sh echo x | bash", "allow", ""},
		{Yolo, "deny Bash(git push:*)", `sh git commit -m "$X"`, "allow", ""},
		{Yolo, "deny Bash(git push:*)", "sh make $X *.o", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh find . -exec grep x {} +", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh ls | xargs wc -l", "allow", ""},
		{Yolo, "deny Bash(rm:*)", "sh mapfile -t a < a.txt", "allow", ""},
		{Yolo, "deny Edit(.env)", "sh $X y", "allow", ""},

		// Plan mode denies what a rule would ask about.
		{Plan, "ask Edit", "write_file a.txt", "deny", ""},
		{Plan, "deny Bash(rm:*)", "sh $X y", "deny", ""},
		{Yolo, "deny run_shell_command(rm)", "sh rm -rf x", "deny", "rm"},
		{Default, "allow run_shell_command(make)", "sh make install", "ask", ""},
		{Yolo, "ask Bash(git push:*)", "sh git push", "ask", "git push"},
		{Default, "allow Bash; ask Bash(git push:*)", "sh make && git push", "ask", "git push"},
		{Default, "", "sh rm -rf build/tmp && ls | wc -l ; echo done", "ask", ""},
		{Default, "allow Bash(gh pr:*)", "sh gh pr create --body \"$(cat <<'EOF'\n## Summary\nEOF\n)\"", "allow", "gh"},
	} {
		o := w.options(c.mode)
		o.Rules = w.rules(c.rules)
		p, warnings, err := New(o)
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s with %q: %v %v", c.mode, c.rules, err, warnings)
			continue
		}
		got := p.Decide(t.Context(), w.request(t, c.call))
		if decisions[got.Decision] != c.want {
			t.Errorf("%s, %q: %s: got %s by %s (%s), want %s", c.mode, c.rules, c.call, decisions[got.Decision], got.By, got.Reason, c.want)
			continue
		}
		by := w.expand(c.by)
		if by == "" && c.want != "allow" {
			by = "approval mode " + string(c.mode)
		}
		if !strings.Contains(got.By, by) {
			t.Errorf("%s, %q: %s: decided by %q, want %q", c.mode, c.rules, c.call, got.By, by)
		}
		if got.Decision != sched.Allow && (got.Reason == "" || got.Suggestion == "") {
			t.Errorf("%s, %q: %s: no reason or suggestion: %+v", c.mode, c.rules, c.call, got)
		}
	}
}

// nested puts a line into that many shells.
func nested(n int, line string) string {
	for range n {
		line = "sh -c " + quoteWord(line)
	}
	return line
}

// TestManyInnerLines: lines within lines are taken apart up to a bound.
func TestManyInnerLines(t *testing.T) {
	w := newWorld(t)
	o := w.options(Yolo)
	o.Rules = w.rules("deny Bash(rm:*)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got := p.Decide(t.Context(), w.request(t, "sh "+strings.Repeat("watch ", maxWords-1)))
	if got.Decision != sched.Ask || !strings.Contains(got.Reason, "too many lines") {
		t.Errorf("%+v", got)
	}
}

// TestBounds: what a line does beyond the bounds asks, also in yolo when there
// is any rule that it could break.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		mode              Mode
		rules, call, want string
	}{
		"at the bound":             {Default, "", strings.Repeat("pwd;", maxSimple), "allow"},
		"commands":                 {Default, "", strings.Repeat("pwd;", maxSimple+1), "ask"},
		"commands, path rule":      {Yolo, "deny Read(.env)", strings.Repeat("pwd;", maxSimple) + "cat .env", "ask"},
		"commands, edit rule":      {Yolo, "ask Edit(x)", strings.Repeat("pwd;", maxSimple+1) + "pwd > x", "ask"},
		"commands, command rule":   {Yolo, "deny Bash(rm:*)", strings.Repeat("pwd;", maxSimple) + "rm x", "ask"},
		"commands, no rule":        {Yolo, "", strings.Repeat("pwd;", maxSimple+1), "allow"},
		"commands, plan":           {Plan, "", strings.Repeat("pwd;", maxSimple+1), "deny"},
		"denied before":            {Yolo, "deny Bash(rm:*)", "rm x;" + strings.Repeat("pwd;", maxSimple), "deny"},
		"within":                   {Yolo, "deny Read(.env)", "sh -c " + quoteWord(strings.Repeat("pwd;", maxSimple)+"cat .env"), "ask"},
		"words":                    {Default, "", "echo" + strings.Repeat(" a", maxWords), "ask"},
		"redirects":                {AutoEdit, "", "echo" + strings.Repeat(" >a", maxActs+1), "ask"},
		"redirects, path rule":     {Yolo, "deny Edit(b)", "echo" + strings.Repeat(" >a", maxActs+1) + " >b", "ask"},
		"files":                    {Default, "", "cat" + strings.Repeat(" a", maxWords-1) + "; cat" + strings.Repeat(" a", maxWords-1) + "; pwd", "ask"},
		"files, more than a bound": {Yolo, "deny Read(.env)", "cat" + strings.Repeat(" a", maxWords-1) + "; cat a a a a .env", "ask"},
	} {
		o := w.options(c.mode)
		o.Rules = w.rules(c.rules)
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Decide(t.Context(), w.request(t, "sh "+c.call)); decisions[got.Decision] != c.want {
			t.Errorf("%s: got %s (%s), want %s", name, decisions[got.Decision], got.Reason, c.want)
		}
	}
}

// TestCancelled: a judgement for which nobody waits ends, and allows nothing.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(w.options(Yolo))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, call := range []string{"sh pwd", "read_file a.txt", "none todo_write"} {
		if got := p.Decide(ctx, w.request(t, call)); got.Decision != sched.Deny || !strings.Contains(got.Reason, "context canceled") {
			t.Errorf("%s: %+v", call, got)
		}
	}
}

// TestRepositoryIsReadOnce: a line with many git commands looks at the
// repository once for each subcommand.
func TestRepositoryIsReadOnce(t *testing.T) {
	w := newWorld(t)
	p, _, err := New(w.options(Default))
	if err != nil {
		t.Fatal(err)
	}
	walk := &shellWalk{place: p.first, dirs: []string{w.ws}, runs: map[string]string{}}
	first := walk.gitRuns("status")
	w.put(t, "ws/.git/config", "[core]\nfsmonitor = x\n")
	if again := walk.gitRuns("status"); first != "" || again != "" {
		t.Errorf("first %q, again %q", first, again)
	}
	walk.runs = map[string]string{}
	if why := walk.gitRuns("status"); !strings.Contains(why, "core.fsmonitor") {
		t.Errorf("in the next line: %q", why)
	}
}

// TestOtherShell: where another shell runs the commands (cmd.exe of Windows),
// none is known to be harmless or to be what a rule forbids.
func TestOtherShell(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		mode        Mode
		rules, want string
	}{
		{Default, "", "ask"}, {Plan, "", "deny"}, {Yolo, "", "allow"}, {Yolo, "deny Bash(rm:*)", "ask"},
		{Default, "allow Bash(ls:*)", "ask"}, {Default, "allow Bash", "allow"}, {Yolo, "deny Bash", "deny"},
	} {
		o := w.options(c.mode)
		o.Rules = w.rules(c.rules)
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		p.otherShell = true
		if got := p.Decide(t.Context(), w.request(t, "sh ls ^& del x")); decisions[got.Decision] != c.want {
			t.Errorf("%s, %q: %+v, want %s", c.mode, c.rules, got, c.want)
		}
	}
}

// TestNestedIsJudgedAlike proves that who made a call changes nothing.
//
// S0-010, S0-163.
func TestNestedIsJudgedAlike(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Rules = w.rules("deny Read(.env); ask Bash(git push:*); allow Bash(make:*)")
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"read_file a.txt": "allow", "read_file .env": "deny", "write_file a.txt": "ask",
		"sh make": "allow", "sh git push": "ask", "sh rm x": "ask", "use mcp__s__t": "ask",
	}
	for call, decision := range want {
		model, nested := w.request(t, call), w.request(t, call)
		nested.Call.Source, nested.Call.ParentID = tool.FromProgram, "exec_1"
		a, b := p.Decide(t.Context(), model), p.Decide(t.Context(), nested)
		if diff := cmp.Diff(a, b); diff != "" || decisions[b.Decision] != decision {
			t.Errorf("%s: model %s, nested %s, want %s\n%s", call, decisions[a.Decision], decisions[b.Decision], decision, diff)
		}
	}
}

// TestSuggestion holds the exact texts that a refused run shows.
func TestSuggestion(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		mode              Mode
		rules, call, want string
		opens             []string
	}{
		{Default, "", "write_file a.txt",
			`To allow it, use --approval-mode auto-edit (writes in the workspace), or "Edit(/$WS/a.txt)" in permissions.allow of SETTINGS, or --approval-mode yolo (all but what rules forbid)`,
			[]string{"Edit(/$WS/a.txt)"}},
		{AutoEdit, "", "write_file .git/config",
			`To allow it, use "Edit(=/$WS/.git/config)" in permissions.allow of SETTINGS, or --approval-mode yolo (all but what rules forbid)`,
			[]string{"Edit(=/$WS/.git/config)"}},
		{Default, "", "read_file $OUT/[x]*.txt",
			`To allow it, use "Read(=/$OUT/\\[x\\]\\*.txt)" in permissions.allow of SETTINGS, or --approval-mode yolo (all but what rules forbid)`,
			[]string{`Read(=/$OUT/\[x\]\*.txt)`}},
		{Default, "", "sh make 'a b' *.o && ls > x",
			`To allow it, use "Bash(make 'a b' '*.o')", "Edit(=/$WS/x)" in permissions.allow of SETTINGS, or --approval-mode yolo (all but what rules forbid)`,
			[]string{"Bash(make 'a b' '*.o')", "Edit(=/$WS/x)"}},
		{Default, "", "sh make $X", "To allow it, use --approval-mode yolo (all but what rules forbid)", nil},
		{Plan, "", "write_file a.txt", "To allow it, use --approval-mode default (asks), or --approval-mode yolo (all but what rules forbid)", nil},
		{Default, "", "use mcp__s__t",
			`To allow it, use "mcp__s__t" in permissions.allow of SETTINGS, or --approval-mode yolo (all but what rules forbid)`, []string{"mcp__s__t"}},
		{Default, "deny Edit(a.txt)", "write_file a.txt",
			`a deny rule holds in every approval mode; to allow the call, change permissions.deny "Edit(a.txt)" (test)`, nil},
		{Yolo, "ask Edit(a.txt)", "write_file a.txt",
			`no approval mode answers an ask rule: run it where someone can answer, or change permissions.ask "Edit(a.txt)" (test)`, nil},
	} {
		o := w.options(c.mode)
		o.Rules = w.rules(c.rules)
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Explain(w.request(t, c.call))
		if diff := cmp.Diff(w.expand(c.want), got.Suggestion); diff != "" {
			t.Errorf("%s: suggestion (-want +got):\n%s", c.call, diff)
		}
		var opens []string
		for _, r := range c.opens {
			opens = append(opens, w.expand(r))
		}
		if diff := cmp.Diff(opens, got.Rules); diff != "" {
			t.Errorf("%s: rules (-want +got):\n%s", c.call, diff)
		}
		if len(got.Rules) == 0 {
			continue
		}
		// What is suggested has to work (BUG-SP-11).
		for _, text := range got.Rules {
			o.Rules = append(o.Rules, Rule{List: "allow", Text: text})
		}
		if p, _, err = New(o); err != nil {
			t.Fatal(err)
		}
		if after := p.Explain(w.request(t, c.call)); after.Decision != sched.Allow {
			t.Errorf("%s: the suggested rules %q do not allow it: %+v", c.call, got.Rules, after)
		}
	}
}

// The rule that is offered for one thing opens this thing: not what is below a
// directory that was listed, and not what would be below a file that is new.
//
// S0-250
func TestJustThis(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		call, rule string
		still      []string // what is asked about then as before
	}{
		{"list_directory $OUT", "list_directory(=/$OUT)", []string{"read_file $OUT/x.txt", "list_directory $OUT/sub", "glob $OUT", "grep_search $OUT", "sh cat $OUT/x.txt"}},
		{"glob $OUT", "glob(=/$OUT)", []string{"read_file $OUT/x.txt", "list_directory $OUT", "glob $OUT/sub"}},
		{"grep_search $OUT", "grep_search(=/$OUT)", []string{"read_file $OUT/x.txt", "grep_search $OUT/sub"}},
		{"read_file $OUT/new", "Read(=/$OUT/new)", []string{"read_file $OUT/new/deep", "read_file $OUT/new2"}},
		{"read_file $OUT/x.txt", "Read(/$OUT/x.txt)", []string{"read_file $OUT/new"}},
		{"write_file new", "Edit(=/$WS/new)", []string{"write_file new/deep", "write_file new2", "edit new/deep"}},
		{"write_file a.txt", "Edit(/$WS/a.txt)", []string{"write_file b.txt"}},
	} {
		o := w.options(Default)
		p, _, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		got := p.Explain(w.request(t, tc.call)).Rules
		if diff := cmp.Diff([]string{w.expand(tc.rule)}, got); diff != "" {
			t.Errorf("%s: %s", tc.call, diff)
			continue
		}
		if err := p.Add(Rule{List: "allow", Text: got[0]}); err != nil {
			t.Fatal(err)
		}
		if v := p.Explain(w.request(t, tc.call)); v.Decision != sched.Allow {
			t.Errorf("%s: %+v", tc.call, v)
		}
		for _, call := range tc.still {
			if v := p.Explain(w.request(t, call)); v.Decision != sched.Ask {
				t.Errorf("%s, after %s: %+v", call, tc.rule, v)
			}
		}
	}
	if _, _, err := New(Options{Dir: w.ws, Rules: []Rule{{List: "deny", Text: "Read(=//etc/*)"}}}); err == nil || !strings.Contains(err.Error(), "cannot have a wildcard") {
		t.Error(err)
	}
}

// Where the command has a flag for rules, it is named, in a form that the shell and
// the flag read as these rules.
func TestSuggestFlag(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.AllowFlag = "--allowed-tools"
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]string{
		"write_file a.txt":      "To allow it, use --approval-mode auto-edit (writes in the workspace), or --allowed-tools 'Edit(/$WS/a.txt)', or \"Edit(/$WS/a.txt)\" in",
		"sh make 'a b' && ls>x": `To allow it, use --allowed-tools 'Bash(make '\''a b'\''),Edit(=/$WS/x)', or "Bash(`,
		"use mcp__s__t":         `To allow it, use --allowed-tools mcp__s__t, or "mcp__s__t" in`,
		"write_file a(1).txt":   "To allow it, use --approval-mode auto-edit (writes in the workspace), or --allowed-tools 'Edit(=/$WS/a(1).txt)', or",
		"write_file a).txt":     "To allow it, use --approval-mode auto-edit (writes in the workspace), or \"Edit(",
	} {
		got := p.Explain(w.request(t, call)).Suggestion
		if !strings.HasPrefix(got, w.expand(want)) || !strings.HasSuffix(got, "or --approval-mode yolo (all but what rules forbid)") {
			t.Errorf("%s: %s", call, got)
		}
	}
}

// TestExplain shows what `tools why` gets: the rule and its layer.
func TestExplain(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Rules = []Rule{{List: "deny", Text: "Read(.env)", Origin: "user settings /h/settings.json:3:14"}}
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	want := Explanation{
		Verdict: sched.Verdict{
			Decision:   sched.Deny,
			Reason:     "reading " + w.ws + `/.env is forbidden by permissions.deny "Read(.env)" (user settings /h/settings.json:3:14)`,
			By:         `rule permissions.deny "Read(.env)" (user settings /h/settings.json:3:14)`,
			Suggestion: `a deny rule holds in every approval mode; to allow the call, change permissions.deny "Read(.env)" (user settings /h/settings.json:3:14)`,
		},
		Rule: "Read(.env)",
	}
	if diff := cmp.Diff(want, p.Explain(w.request(t, "read_file .env"))); diff != "" {
		t.Error(diff)
	}
}

func TestHidden(t *testing.T) {
	w := newWorld(t)
	o := w.options(Default)
	o.Rules, o.HidesDenied = w.rules("deny Read(.env); deny Edit(a.txt)"), true
	p, _, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range []string{".env", "sub/.env", "a.txt", "src/main.go"} {
		got[f] = p.Hidden(filepath.Join(w.ws, f))
	}
	if diff := cmp.Diff(map[string]bool{".env": true, "sub/.env": true, "a.txt": false, "src/main.go": false}, got); diff != "" {
		t.Error(diff)
	}
	if v := p.Decide(t.Context(), w.request(t, "grep_search .")); v.Decision != sched.Allow {
		t.Errorf("a search that leaves denied files out: %+v", v)
	}
	if v := p.Decide(t.Context(), w.request(t, "sh grep -r x .")); v.Decision != sched.Deny {
		t.Errorf("grep does not leave denied files out: %+v", v)
	}
}
