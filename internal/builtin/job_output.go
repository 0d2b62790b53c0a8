package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"capstan/internal/shell"
	"capstan/internal/tool"
)

//go:embed job_output.md
var jobOutputText string

const jobOutputInput = `{"type":"object","properties":{` +
	`"job_id":{"type":"string"},` +
	`"since":{"type":"integer","minimum":0,"description":"first byte: an earlier next"},` +
	`"wait":{"type":"integer","minimum":0,"maximum":600000,"description":"ms to wait for its end"}` +
	`},"required":["job_id"],"additionalProperties":false}`

const jobOutputOutput = `{"type":"object","properties":{` +
	`"jobId":{"type":"string"},"running":{"type":"boolean"},"exitCode":{"type":"integer"},"next":{"type":"integer"}}}`

// jobOutput may wait for a job, so it never holds a slot (DESIGN section 1).
type jobOutput struct {
	overlapping
	jobs *shell.Jobs
	spec tool.Spec
}

func newJobOutput(jobs *shell.Jobs) tool.Tool {
	return &jobOutput{jobs: jobs, spec: tool.Spec{
		Name: "job_output", Title: "JobOutput", Description: text(jobOutputText),
		Input: json.RawMessage(jobOutputInput), Output: json.RawMessage(jobOutputOutput),
		Effect: tool.EffectNone, Seldom: true, Waits: true, Hint: "background log tail wait",
	}}
}

func (t *jobOutput) Spec() *tool.Spec { return &t.spec }

func (t *jobOutput) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in struct {
		JobID string `json:"job_id"`
		Since int64  `json:"since"`
		Wait  int    `json:"wait"`
	}
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of job_output: %v", err), nil
	}
	out, err := t.jobs.Output(ctx, in.JobID, in.Since, time.Duration(in.Wait)*time.Millisecond)
	if err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, err
		}
		return tool.Fail(tool.CodeFailed, "job_output: %v.", err), nil
	}
	return jobResult(out, in.Since), nil
}

// jobResult is a part of a job's output, and where the job stands at the end.
func jobResult(out shell.JobOutput, since int64) tool.Result {
	text := out.Text
	if out.From > since && out.From < out.Total {
		text = fmt.Sprintf("[%d bytes before this are not kept]\n", out.From-since) + text
	}
	var notes []string
	state := fmt.Sprintf("%s: %s", out.ID, jobState(out.Job))
	data := struct {
		JobID    string `json:"jobId"`
		Running  bool   `json:"running"`
		ExitCode *int   `json:"exitCode,omitempty"`
		Next     int64  `json:"next"`
	}{JobID: out.ID, Running: out.Running, Next: out.Next}
	if out.Running {
		state += fmt.Sprintf("; since: %d continues here", out.Next)
	} else {
		data.ExitCode = &out.Result.ExitCode
		notes = leftBehind(out.Result)
		if out.Result.Waiting != "" && !out.Result.Interrupted {
			notes = append(notes, "hint: "+out.Result.Waiting)
		}
	}
	r := tool.Text(withNotes(text, append(notes, state)))
	r.Data = encodeData(data)
	return r
}
