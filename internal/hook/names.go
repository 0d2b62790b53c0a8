package hook

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"

	"capstan/internal/tool"
)

// A dialect is whose names a hook is told of tools in.
type dialect int

const (
	claude dialect = iota // Claude Code's
	own                   // Capstan's, which are qwen-code's
)

// A foreignTool is how Claude Code calls a tool of ours, and the arguments that
// it calls otherwise.
type foreignTool struct {
	name   string
	fields map[string]string // ours to theirs
	paths  []string          // fields with paths, which are absolute there
}

// foreignTools are the tools that Claude Code has too.
var foreignTools = map[string]foreignTool{
	"run_shell_command": {name: "Bash", fields: map[string]string{"is_background": "run_in_background"}},
	"read_file":         {name: "Read", paths: []string{"file_path"}},
	"write_file":        {name: "Write", paths: []string{"file_path"}},
	"edit":              {name: "Edit", paths: []string{"file_path"}},
	"list_directory":    {name: "LS", paths: []string{"path"}},
	"glob":              {name: "Glob", paths: []string{"path"}},
	"grep_search":       {name: "Grep", fields: map[string]string{"limit": "head_limit"}, paths: []string{"path"}},
	"web_fetch":         {name: "WebFetch"},
	"todo_write":        {name: "TodoWrite"},
	"agent":             {name: "Task"},
	"skill":             {name: "Skill"},
	"ask_user_question": {name: "AskUserQuestion"},
	"exit_plan_mode":    {name: "ExitPlanMode"},
	"job_output":        {name: "BashOutput", fields: map[string]string{"job_id": "bash_id"}},
	"job_stop":          {name: "KillShell", fields: map[string]string{"job_id": "shell_id"}},
}

// claudeNames are names of Claude Code, beside those of foreignTools, by which
// a matcher means a tool of ours.
var claudeNames = map[string]string{
	"MultiEdit": "edit", "NotebookEdit": "edit", "NotebookRead": "read_file", "Agent": "agent", "KillBash": "job_stop",
}

// name is what a tool is called in a dialect.
func (d dialect) name(canonical string) string {
	if f, ok := foreignTools[canonical]; ok && d == claude {
		return f.name
	}
	return canonical
}

// otherNames are the names of qwen-code and its kin for each tool of ours.
var otherNames = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for _, alias := range tool.AllRuleNames() {
		if _, ok := claudeNames[alias]; ok {
			continue
		}
		ours := tool.RuleNames(alias)[0]
		if foreignTools[ours].name != alias {
			all[ours] = append(all[ours], alias)
		}
	}
	return all
})

// called says whether a matcher's word is a name of the tool, and in which
// dialect.
func called(word, canonical string) (dialect, bool) {
	switch {
	case foreignTools[canonical].name == word && word != "", claudeNames[word] == canonical:
		return claude, true
	case word == canonical, slices.Contains(otherNames()[canonical], word):
		return own, true
	}
	return claude, false
}

// input gives the arguments of a call in a dialect. dir is what their paths are
// relative to.
func (d dialect) input(canonical string, args json.RawMessage, dir string) json.RawMessage {
	f, ok := foreignTools[canonical]
	if d != claude || !ok || len(f.fields)+len(f.paths) == 0 {
		return args
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(args, &in) != nil || in == nil {
		return args
	}
	rename(in, f.fields, false)
	for _, field := range f.paths {
		var path string
		if json.Unmarshal(in[field], &path) == nil && path != "" && !filepath.IsAbs(path) {
			in[field] = quote(filepath.Join(dir, path))
		}
	}
	return marshal(in)
}

// back is the reverse of input: arguments that a hook wrote, under our names.
func (d dialect) back(canonical string, args json.RawMessage) json.RawMessage {
	f, ok := foreignTools[canonical]
	if d != claude || !ok || len(f.fields) == 0 {
		return args
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(args, &in) != nil || in == nil {
		return args // which validation refuses
	}
	rename(in, f.fields, true)
	return marshal(in)
}

func rename(in map[string]json.RawMessage, fields map[string]string, back bool) {
	for from, to := range fields {
		if back {
			from, to = to, from
		}
		if v, ok := in[from]; ok {
			delete(in, from)
			in[to] = v
		}
	}
}

// response gives the result of a call as the hooks of a dialect expect it.
func (d dialect) response(c *tool.Call, r *tool.Result, dir string) json.RawMessage {
	text := r.Text()
	if d == own {
		out := map[string]any{"status": r.Status, "output": text}
		if len(r.Data) > 0 {
			out["structuredContent"] = valid(r.Data)
		}
		return marshal(out)
	}
	path := func() string {
		var in struct {
			FilePath string `json:"file_path"`
		}
		_ = json.Unmarshal(claude.input(c.Name, c.Args, dir), &in)
		return in.FilePath
	}
	switch c.Name {
	case "run_shell_command":
		return marshal(map[string]any{"stdout": text, "stderr": "", "interrupted": r.Status == tool.Cancelled, "isImage": false})
	case "read_file":
		return marshal(map[string]any{"type": "text", "file": map[string]any{"filePath": path(), "content": text}})
	case "write_file", "edit":
		return marshal(map[string]any{"filePath": path(), "success": r.Status == tool.Success, "output": text})
	}
	if len(r.Data) > 0 {
		return valid(r.Data)
	}
	return marshal(map[string]any{"output": text})
}
