package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"capstan/internal/shell"
	"capstan/internal/tool"
)

//go:embed job_list.md
var jobListText string

const jobListOutput = `{"type":"object","properties":{"jobs":{"type":"array","items":{"type":"object","properties":{` +
	`"jobId":{"type":"string"},"command":{"type":"string"},"running":{"type":"boolean"},"exitCode":{"type":"integer"},"bytes":{"type":"integer"}}}}}}`

type jobList struct {
	overlapping
	jobs *shell.Jobs
	spec tool.Spec
}

func newJobList(jobs *shell.Jobs) tool.Tool {
	return &jobList{jobs: jobs, spec: tool.Spec{
		Name: "job_list", Title: "JobList", Description: text(jobListText), Output: json.RawMessage(jobListOutput),
		Effect: tool.EffectNone, Seldom: true, Hint: "background process running",
	}}
}

// overlapping is the access of the tools that concern jobs: jobs are the
// session's own and guard themselves.
type overlapping struct{}

// Access always overlaps and touches no path.
func (overlapping) Access(*tool.Call) tool.Access { return tool.Access{Overlap: true} }

func (t *jobList) Spec() *tool.Spec { return &t.spec }

type jobData struct {
	JobID    string `json:"jobId"`
	Command  string `json:"command"`
	Running  bool   `json:"running"`
	ExitCode *int   `json:"exitCode,omitempty"`
	Bytes    int64  `json:"bytes"`
}

func (t *jobList) Run(context.Context, *tool.Invocation) (tool.Result, error) {
	list := t.jobs.List()
	data := struct {
		Jobs []jobData `json:"jobs"`
	}{Jobs: []jobData{}}
	var lines []string
	for _, j := range list {
		d := jobData{JobID: j.ID, Command: j.Command, Running: j.Running, Bytes: j.Total}
		if !j.Running {
			d.ExitCode = &j.Result.ExitCode
		}
		data.Jobs = append(data.Jobs, d)
		lines = append(lines, fmt.Sprintf("%s: %s, %d bytes of output: %s", j.ID, jobState(j), j.Total, oneLine(j.Command)))
	}
	if len(lines) == 0 {
		lines = []string{"There are no background jobs."}
	}
	r := tool.Text(strings.Join(lines, "\n"))
	r.Data = encodeData(data)
	return r, nil
}

// jobState says in a few words where a job stands.
func jobState(j shell.Job) string {
	switch {
	case j.Running:
		return fmt.Sprintf("running for %v", time.Since(j.Started).Round(time.Second))
	case j.Err != nil:
		return j.Err.Error()
	case j.Stopped:
		return "stopped"
	case j.Result.TimedOut:
		return "timed out"
	case j.Result.Interrupted:
		return "ended, since " + j.Result.Waiting
	}
	return "ended with " + exitText(j.Result)
}

// oneLine shortens a command for a list.
func oneLine(s string) string {
	const most = 200
	s = strings.Join(strings.Fields(s), " ")
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// JobLine names a job and its command on one line.
func JobLine(j shell.Job) string { return j.ID + ": " + oneLine(j.Command) }

// RunningJobs gives a line for each job that runs and that calls below the
// given call started: what a program leaves running is named in the result of
// its exec (ruling 9).
func RunningJobs(jobs *shell.Jobs, callID string) (lines []string) {
	for _, j := range jobs.List() {
		if j.Running && (j.Owner == callID || strings.HasPrefix(j.Owner, callID+"/")) {
			lines = append(lines, JobLine(j))
		}
	}
	return lines
}
