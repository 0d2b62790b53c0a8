package session

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"capstan/internal/msg"
)

// A Decision records how it was decided whether a call may run: who had the last
// word, what was shown to whom, and what they said. It is for audits; no state of
// a session follows from it.
type Decision struct {
	Call     string `json:"call"`               // its id
	Name     string `json:"name"`               // the tool's true name
	Source   string `json:"source"`             // model or code_mode
	ParentID string `json:"parentId,omitempty"` // the exec whose program made it
	Agent    string `json:"agent,omitempty"`    // the subagent whose call it is

	Allowed bool   `json:"allowed"`
	Stage   string `json:"stage"`            // hook, rules, person, guard; nobody when none could be asked
	By      string `json:"by,omitempty"`     // who had the last word: the rule, mode or hook, or the person
	Reason  string `json:"reason,omitempty"` // with a no: as the model is told
	Rules   string `json:"rules,omitempty"`  // what rules and mode said: allow, ask or deny
	Hooks   string `json:"hooks,omitempty"`  // what hooks said

	// Args are the beginning of the arguments that were judged, ArgsSHA256 is of
	// all of them, Definition of the tool's definition: what was approved can be
	// told from what was not.
	Args       string `json:"args,omitempty"`
	ArgsSHA256 string `json:"argsSha256,omitempty"`
	Definition string `json:"definitionSha256,omitempty"`
	Changed    bool   `json:"changed,omitempty"` // a hook or the person rewrote the arguments

	Asked    string   `json:"asked,omitempty"`      // why somebody was asked, as it was shown
	Answered string   `json:"answeredBy,omitempty"` // the person who answered, whoever had the last word
	Said     string   `json:"said,omitempty"`       // their words
	Grants   []string `json:"grants,omitempty"`     // rules that they put into force: "session allow Bash(make)"
	WaitMS   int64    `json:"waitMs,omitempty"`     // for the answer
}

// maxDecisionArgs bounds the arguments that a Decision keeps, in bytes.
const maxDecisionArgs = 4 << 10

// Decision records one. It is on the disk when a call that it allows, and that
// may change something, starts.
func (l *Log) Decision(d Decision) error {
	if len(d.Args) > maxDecisionArgs { // cleaned first: half a secret is none that clean would know
		d.Args = prefix(l.s.clean(prefix(d.Args, maxDecisionArgs+longestSecret)), maxDecisionArgs) + "…"
	}
	return l.add(event{Kind: kindDecision, Decision: &d}, false)
}

// An AuditEntry is one call of a session: how it was decided, and what came of
// it. One that was refused before anybody judged it has the stage "refused", and its
// arguments when a model made it.
type AuditEntry struct {
	Time time.Time `json:"time"`
	Turn int64     `json:"turn"`
	Decision
	Status  string `json:"status,omitempty"` // of its result; empty: there is none
	Code    string `json:"code,omitempty"`
	Session string `json:"session,omitempty"` // a subagent's transcript, when it stands in that
}

// StageRefused is the stage of a call that was refused before hooks, rules or
// people saw it: a name that there is not here, arguments that do not fit.
const StageRefused = "refused"

// Audit returns every decision of a session and of its subagents, in the order of
// their time. Notes say what the log does not tell any more.
func (s *Store) Audit(prefix string) (entries []AuditEntry, notes []string, err error) {
	path, err := s.find(prefix)
	if err != nil {
		return nil, nil, err
	}
	a := &auditor{}
	if err := a.read(s, path, "", ""); err != nil {
		return nil, nil, err
	}
	below, err := agents(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note("the transcripts of subagents cannot be listed: %v", err)
	}
	for _, sub := range below {
		if err := a.read(s, subPath(path, sub.ID), sub.ID, sub.Agent); err != nil {
			a.note("the transcript of %s is left out: %v", sub.Agent, err)
		}
	}
	slices.SortStableFunc(a.entries, func(x, y AuditEntry) int { return x.Time.Compare(y.Time) })
	return a.entries, a.notes, nil
}

// An auditor collects the entries of the logs of one session.
type auditor struct {
	entries []AuditEntry
	notes   []string
	session string            // of the subagent whose log is read
	agent   string            // its name
	open    map[string]int    // entries without a result, by the call's id in that log
	args    map[string]string // of the model's calls, likewise
}

func (a *auditor) note(format string, args ...any) {
	a.notes = append(a.notes, fmt.Sprintf(format, args...))
}

func (a *auditor) read(s *Store, path, session, agent string) error {
	in, err := openLog(path)
	if err != nil {
		return fmt.Errorf("reading session %s: %w", idOf(path), err)
	}
	defer in.Close()
	a.session, a.agent, a.open, a.args = session, agent, map[string]int{}, map[string]string{}
	r := &reader{files: s.files(path), event: a.add, note: a.note}
	if err := r.read(in); err != nil {
		return fmt.Errorf("reading session %s: %w", idOf(path), err)
	}
	return nil
}

func (a *auditor) add(e event) {
	switch {
	case e.Message != nil:
		for _, c := range e.Message.Calls() {
			a.args[c.ID] = c.Args
		}
	case e.Decision != nil:
		a.open[strings.TrimPrefix(e.Decision.Call, a.agent+"/")] = len(a.entries)
		a.entries = append(a.entries, AuditEntry{Time: e.Time, Turn: e.Turn, Decision: *e.Decision, Session: a.session})
	case e.Result != nil:
		r := e.Result
		i, decided := a.open[r.CallID]
		delete(a.open, r.CallID)
		if !decided {
			if r.Status == "success" { // of a version that kept no decisions
				return
			}
			d := Decision{Call: a.unique(r.CallID), Name: r.Name, Args: prefix(a.args[r.CallID], maxDecisionArgs), ParentID: a.unique(r.ParentID), Agent: a.agent, Source: "model", Stage: StageRefused, Reason: prefix(strings.TrimSpace(msg.JoinText(r.Parts)), 1000)}
			if r.ParentID != "" {
				d.Source = "code_mode"
			}
			i = len(a.entries)
			a.entries = append(a.entries, AuditEntry{Time: e.Time, Turn: e.Turn, Decision: d, Session: a.session})
		}
		a.entries[i].Status, a.entries[i].Code = r.Status, r.Code
	}
}

// unique is the id that a call of a log has in its session, where decisions name it
// so: a subagent's log has the ids as its model sees them.
func (a *auditor) unique(id string) string {
	if a.agent == "" || id == "" {
		return id
	}
	return a.agent + "/" + id
}
