package session

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// subs is the end of the name of the directory, beside a log, with the logs of
// the session's subagents.
const subs = ".agents"

// Sub returns the log of a subagent of this session: a log of its own in the
// directory <id>.agents beside the session's, so that no list takes it for a
// session. Its header names the session and, as h has it, the call that started
// it. The file is made with the first event.
func (l *Log) Sub(h Header) *Log {
	h.ID, h.Format, h.Parent = newID(), Format, l.head.ID
	h.Workspace, h.Dir, h.Version = l.head.Workspace, l.head.Dir, l.head.Version
	return &Log{s: l.s, head: h, path: filepath.Join(strings.TrimSuffix(l.path, suffix)+subs, h.ID+suffix)}
}

// An AgentInfo tells of one subagent of a session.
type AgentInfo struct {
	ID      string    `json:"id"`    // of its transcript: Read and Export take it
	Agent   string    `json:"agent"` // what its session calls it: agent_1
	Type    string    `json:"type,omitempty"`
	Call    string    `json:"call,omitempty"`  // the call that started it
	Title   string    `json:"title,omitempty"` // the first line of its task
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created,omitzero"`
}

// agents lists the subagents of a session by the time at which they began. What
// cannot be read costs itself only.
func agents(log string) ([]AgentInfo, error) {
	paths, err := logs(strings.TrimSuffix(log, suffix) + subs)
	if err != nil {
		return nil, err
	}
	var list []AgentInfo
	for _, p := range paths {
		i := look(p)
		list = append(list, AgentInfo{ID: i.ID, Agent: i.header.Agent, Type: i.header.AgentType, Call: i.header.Call, Title: i.Title, Model: i.Model, Created: i.Created})
	}
	slices.SortFunc(list, func(a, b AgentInfo) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Agent, b.Agent)
	})
	return list, nil
}

// subPath is the path of a subagent's log.
func subPath(log, id string) string {
	return filepath.Join(strings.TrimSuffix(log, suffix)+subs, id+suffix)
}

// isSub says whether a path is that of a subagent's log, and of which session.
func isSub(log string) (session string, ok bool) {
	return strings.CutSuffix(filepath.Base(filepath.Dir(log)), subs)
}

// subagents finds the logs of subagents whose ids begin so, in the directory of
// one workspace.
func subagents(dir, prefix string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*"+subs))
	if err != nil {
		return nil, fmt.Errorf("looking for subagents: %w", err)
	}
	var paths []string
	for _, d := range found {
		all, err := logs(d)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, p := range all {
			if strings.HasPrefix(idOf(p), prefix) {
				paths = append(paths, p)
			}
		}
	}
	return paths, nil
}

// escapeGlob takes their meaning from the characters of a directory's name.
func escapeGlob(dir string) string {
	if filepath.Separator == '\\' { // there nothing can be escaped, and * and ? are in no name
		return strings.ReplaceAll(dir, "[", "?")
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}
