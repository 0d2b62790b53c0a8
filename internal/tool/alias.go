package tool

import (
	"slices"
	"strings"
	"sync"
)

// ruleNames are the names under which permission rules of Claude Code and
// qwen-code know our tools. The first of them is the one that does the job.
var ruleNames = map[string][]string{
	"Read": {"read_file", "list_directory", "glob", "grep_search"},
	"Edit": {"edit", "write_file"}, "MultiEdit": {"edit", "write_file"}, "NotebookEdit": {"edit", "write_file"},
	"Write": {"write_file"}, "WriteFile": {"write_file"}, "WriteFileTool": {"write_file"},
	"ReadFile": {"read_file"}, "ReadFileTool": {"read_file"}, "NotebookRead": {"read_file"},
	"ReadManyFiles": {"read_file"}, "ReadManyFilesTool": {"read_file"}, "read_many_files": {"read_file"},
	"EditTool": {"edit"}, "replace": {"edit"},
	"Bash": {"run_shell_command"}, "Shell": {"run_shell_command"}, "ShellTool": {"run_shell_command"},
	"Grep": {"grep_search"}, "GrepTool": {"grep_search"}, "search_file_content": {"grep_search"},
	"Glob": {"glob"}, "GlobTool": {"glob"}, "FindFiles": {"glob"},
	"LS": {"list_directory"}, "ListFiles": {"list_directory"}, "ListFilesTool": {"list_directory"},
	"LSTool": {"list_directory"}, "ls": {"list_directory"},
	"WebFetch": {"web_fetch"}, "WebFetchTool": {"web_fetch"},
	"WebSearch": {"web_search"}, "WebSearchTool": {"web_search"},
	"Task": {"agent"}, "Agent": {"agent"}, "task": {"agent"}, "Skill": {"skill"}, "SkillTool": {"skill"},
	"ListMcpResourcesTool": {"list_mcp_resources"}, "ReadMcpResourceTool": {"read_mcp_resource"},
	"ToolSearch": {"tool_search"}, "SendMessage": {"send_message"}, "StructuredOutput": {"structured_output"},
	"EnterPlanMode": {"enter_plan_mode"}, "EnterWorktree": {"enter_worktree"}, "ExitWorktree": {"exit_worktree"},
	"TaskList": {"task_list"}, "RunShellCommand": {"run_shell_command"},
	"TodoWrite": {"todo_write"}, "TodoWriteTool": {"todo_write"},
	"AskUserQuestion": {"ask_user_question"}, "ExitPlanMode": {"exit_plan_mode"},
	"BashOutput": {"job_output"}, "KillShell": {"job_stop"}, "KillBash": {"job_stop"},
}

// RuleNames returns the tools of ours that a permission rule with a name of
// another product is about; nil for a name that is none.
func RuleNames(name string) []string { return slices.Clone(ruleNames[name]) }

// AllRuleNames returns every name that RuleNames knows, sorted.
func AllRuleNames() []string {
	out := make([]string, 0, len(ruleNames))
	for n := range ruleNames {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// dialects are further names by which models that were trained with other
// products call for a job, beside the tool that does it here. No rule is written
// with them. They are spelt as fold has them.
var dialects = map[string][]string{
	"run_shell_command": {"localshell", "terminal", "powershell", "containerexec", "execcommand", "execbash", "executebash", "executecommand", "executeshellcommand",
		"runbash", "runcommand", "runshell", "runterminalcmd", "runterminalcommand", "runinterminal", "shellcommand", "shellexec", "unifiedexec"},
	"read_file":      {"cat", "catfile", "fsread", "getfilecontents", "openfile", "readmultiplefiles", "readtextfile", "view", "viewfile"},
	"edit":           {"applydiff", "applypatch", "editfile", "fsedit", "inserteditintofile", "patch", "replaceinfile", "replacestringinfile", "searchandreplace", "searchreplace", "strreplace", "strreplacebasededit", "strreplaceeditor", "texteditor"},
	"write_file":     {"create", "createfile", "fswrite", "newfile", "savefile", "writetextfile", "writetofile"},
	"list_directory": {"dir", "listdir", "listdirs", "listfolder", "readdirectory", "readfolder", "tree"},
	"glob":           {"filesearch", "find", "findbyname", "findfile", "globsearch", "searchfilesbyname"},
	"grep_search":    {"codebasesearch", "codesearch", "findinfiles", "ripgrep", "rg", "search", "searchcode", "searchfiles", "searchtext", "textsearch"},
	"web_fetch":      {"browse", "curl", "fetch", "fetchcontent", "fetchurl", "fetchwebpage", "geturl", "httpget", "openurl", "readurl", "urlfetch"},
	"web_search":     {"googlesearch", "googlewebsearch", "searchweb"},
	"todo_write":     {"managetodolist", "taskcreate", "taskupdate", "todo", "updateplan", "updatetodolist", "writetodos"},
	"skill":          {"activateskill", "loadskill", "useskill"},
	"agent":          {"dispatchagent", "newtask", "spawnagent", "subagent"},

	"ask_user_question": {"askfollowupquestion", "askquestion", "askuser", "requestuserinput"},
	"job_output":        {"readterminal", "taskoutput"},
	"job_stop":          {"killprocess", "taskstop"},
	ExecName:            {"executecode", "javascript", "nodejs", "noderepl", "runcode", "runjavascript"},
}

// fold brings the spellings of a name together: str_replace, strReplace and
// Str-Replace, WebFetch and web_fetch_tool.
func fold(name string) string {
	name = strings.ToLower(name[:min(len(name), maxNear)])
	name = strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(name)
	if short := strings.TrimSuffix(name, "tool"); len(short) > 2 {
		return short
	}
	return name
}

// doers maps every folded name to the tool that does its job.
var doers = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for name, tools := range ruleNames {
		all[fold(name)] = tools[0]
	}
	for tool, names := range dialects {
		for _, n := range names {
			all[n] = tool
		}
		all[fold(tool)] = tool
	}
	return all
})

// doer returns the tool of ours that does the job of a name that is none of
// ours, if this scope reaches it, and what is to be said of it.
func (v *View) doer(name string) (*Entry, string) {
	ours, ok := doers()[fold(name)]
	if !ok {
		return nil, ""
	}
	if e := v.Visible(ours); e != nil {
		return e, ""
	}
	if ours == "web_search" {
		return v.Visible("web_fetch"), ", which reads a page whose address you know"
	}
	return nil, ""
}

// instead says how a caller gets at the tool that does the job of the name, and
// nothing when there is none in its reach (ruling 5).
func (v *View) instead(name string, nested bool) string {
	e, note := v.doer(name)
	if e == nil {
		return ""
	}
	ours := e.spec.Name
	switch how := v.reach[e]; {
	case nested && how.nested:
		return "use tools." + e.js + note
	case nested && how.direct:
		return "use " + ours + note + v.notNested(e)
	case nested:
		return ""
	case how.direct:
		return "use " + ours + note
	case how.nested && v.ready.exec:
		return "run " + ours + note + " inside exec: `const r = await tools." + e.js + "({…}); text(r.output)`"
	case how.bridge:
		return "use " + ours + note + ": find it with " + ToolSearchName + " first, then call it through " + ToolCallName
	}
	return ""
}
