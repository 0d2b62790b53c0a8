package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"capstan/internal/shell"
	"capstan/internal/tool"
)

//go:embed job_stop.md
var jobStopText string

const jobStopInput = `{"type":"object","properties":{"job_id":{"type":"string"}},"required":["job_id"],"additionalProperties":false}`

type jobStop struct {
	overlapping
	jobs *shell.Jobs
	spec tool.Spec
}

// newJobStop makes a tool that needs no permission: it ends only what this
// session was allowed to start.
func newJobStop(jobs *shell.Jobs) tool.Tool {
	return &jobStop{jobs: jobs, spec: tool.Spec{
		Name: "job_stop", Title: "JobStop", Description: text(jobStopText), Input: json.RawMessage(jobStopInput),
		Effect: tool.EffectNone, Seldom: true, Hint: "kill background process end",
	}}
}

func (t *jobStop) Spec() *tool.Spec { return &t.spec }

func (t *jobStop) Run(ctx context.Context, inv *tool.Invocation) (tool.Result, error) {
	var in struct {
		JobID string `json:"job_id"`
	}
	if err := json.Unmarshal(inv.Call.Args, &in); err != nil {
		return tool.Fail(tool.CodeInvalidArgs, "reading the arguments of job_stop: %v", err), nil
	}
	job, err := t.jobs.Stop(ctx, in.JobID)
	switch {
	case err != nil && ctx.Err() != nil:
		return tool.Result{}, err
	case err != nil:
		return tool.Fail(tool.CodeFailed, "job_stop: %v.", err), nil
	case !job.Stopped:
		return tool.Text(fmt.Sprintf("%s had ended before: %s.", job.ID, jobState(job))), nil
	}
	return tool.Text(withNotes(fmt.Sprintf("%s was stopped after %d bytes of output.", job.ID, job.Total), leftBehind(job.Result))), nil
}
