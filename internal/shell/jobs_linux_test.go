package shell

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// unclocked compares jobs but for when they ran and how they ended.
var unclocked = cmpopts.IgnoreFields(Job{}, "Started", "Dir", "Result")

// Ruling 9: a job survives the call that started it, and ends with the session.
func TestJobs(t *testing.T) {
	supervisors(t, func(t *testing.T, o Options) {
		mark := newMark()
		j := NewJobs(New(o))
		defer j.Close()
		env := append(os.Environ(), "MARK="+mark)
		long, err := j.Start(Command{Line: "echo up; sleep 300", Env: env}, "call-1")
		if err != nil {
			t.Fatal(err)
		}
		short, err := j.Start(Command{Line: "echo one; echo two; exit 3", Env: env}, "call-2")
		if err != nil {
			t.Fatal(err)
		}
		got, err := j.Output(testContext(t), short.ID, 0, deadline)
		if err != nil {
			t.Fatal(err)
		}
		want := JobOutput{Job: Job{ID: "job-2", Owner: "call-2", Command: "echo one; echo two; exit 3", Total: 8}, Text: "one\ntwo\n", Next: 8}
		if diff := cmp.Diff(want, got, unclocked); diff != "" || got.Result.ExitCode != 3 {
			t.Errorf("exit code %d, output (-want +got):\n%s", got.Result.ExitCode, diff)
		}
		if got, err := j.Output(testContext(t), short.ID, 4, 0); err != nil || got.Text != "two\n" || got.From != 4 || got.Next != 8 {
			t.Errorf("from byte 4: %+v, %v", got, err)
		}
		stopped, err := j.Stop(testContext(t), long.ID)
		if err != nil || stopped.Running || !stopped.Stopped {
			t.Errorf("stopped: %+v, %v", stopped, err)
		}
		if again, err := j.Stop(testContext(t), short.ID); err != nil || again.Stopped {
			t.Errorf("stopping a job that has ended: %+v, %v", again, err)
		}
		eventuallyGone(t, mark)

		third, err := j.Start(Command{Line: "sleep 300", Env: env}, "")
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, x := range j.List() {
			ids = append(ids, x.ID)
		}
		if diff := cmp.Diff([]string{"job-1", "job-2", "job-3"}, ids); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		ended := j.Close()
		if len(ended) != 1 || ended[0].ID != third.ID || ended[0].Running || !ended[0].Stopped {
			t.Errorf("closing ended %+v, want %s", ended, third.ID)
		}
		eventuallyGone(t, mark)
		if _, err := j.Start(Command{Line: "true"}, ""); err == nil {
			t.Error("a job was started after the end")
		}
	})
}

// A job lasts until its last process has ended, not only its shell.
func TestJobLastsWithItsChildren(t *testing.T) {
	mark := newMark()
	j := NewJobs(New(Options{Grace: time.Millisecond}))
	defer j.Close()
	dir := t.TempDir()
	x, err := j.Start(Command{Line: "(setsid sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo late' &); echo early", Dir: dir, Env: append(os.Environ(), "MARK="+mark)}, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Output(testContext(t), x.ID, 0, 200*time.Millisecond)
	if err != nil || !got.Running {
		t.Errorf("got %+v, %v, want a job that runs", got, err)
	}
	if err := os.WriteFile(dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err = j.Output(testContext(t), x.ID, 0, deadline)
	if err != nil || got.Running || got.Text != "early\nlate\n" || got.Result.LeftoverCount != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestJobsUnknown(t *testing.T) {
	j := NewJobs(New(Options{}))
	defer j.Close()
	for _, id := range []string{"", "job-1", "1"} {
		if _, err := j.Output(testContext(t), id, 0, 0); !errors.Is(err, ErrNoJob) {
			t.Errorf("output of %q: %v", id, err)
		}
		if _, err := j.Stop(testContext(t), id); !errors.Is(err, ErrNoJob) {
			t.Errorf("stopping %q: %v", id, err)
		}
	}
	if _, err := j.Start(Command{Line: "true", Dir: "/no/such/dir"}, ""); err == nil || len(j.List()) != 0 {
		t.Errorf("a job that cannot start: %v, %+v", err, j.List())
	}
}

// Waiting for a job ends with the caller, and the job stays.
func TestJobWaitCancelled(t *testing.T) {
	j := NewJobs(New(Options{}))
	defer j.Close()
	x, err := j.Start(Command{Line: "sleep 300"}, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := j.Output(ctx, x.ID, 0, deadline); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if list := j.List(); !list[0].Running {
		t.Error("the job does not run any more")
	}
}

// A job keeps the latest part of its output and counts all of it.
func TestJobOutputIsBounded(t *testing.T) {
	j := NewJobs(New(Options{}))
	defer j.Close()
	x, err := j.Start(Command{Line: "seq -f '%09.0f' 400000"}, "") // 4 MB
	if err != nil {
		t.Fatal(err)
	}
	got, err := j.Output(testContext(t), x.ID, 0, deadline)
	if err != nil {
		t.Fatal(err)
	}
	if got.Total != 4_000_000 || got.Next != got.Total || got.From != got.Total-JobKeep || len(got.Text) != JobKeep || !strings.HasSuffix(got.Text, "\n000400000\n") {
		t.Errorf("total %d, from %d to %d, %d bytes", got.Total, got.From, got.Next, len(got.Text))
	}
	if past, err := j.Output(testContext(t), x.ID, 1<<40, 0); err != nil || past.Text != "" || past.From != got.Total {
		t.Errorf("beyond the end: %+v, %v", past, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := cap(j.list[0].ring); n > 4*JobKeep {
		t.Errorf("%d bytes are held", n)
	}
}

// Too many jobs are refused, and old ones are forgotten, never running ones.
func TestJobsAreBounded(t *testing.T) {
	j := NewJobs(New(Options{Portable: true}))
	defer j.Close()
	running, err := j.Start(Command{Line: "sleep 300"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for range maxEndedJobs + 3 {
		x, err := j.Start(Command{Argv: []string{"true"}}, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Output(testContext(t), x.ID, 0, deadline); err != nil {
			t.Fatal(err)
		}
	}
	if list := j.List(); len(list) != maxEndedJobs+1 || list[0].ID != running.ID || list[1].ID != "job-5" {
		t.Errorf("%d jobs, first %s and %s", len(list), list[0].ID, list[1].ID)
	}
	for range MaxRunningJobs - 1 {
		if _, err := j.Start(Command{Line: "sleep 300"}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.Start(Command{Line: "sleep 300"}, ""); err == nil || !strings.Contains(err.Error(), "job_stop") {
		t.Errorf("one too many: %v", err)
	}
	if ended := j.Close(); len(ended) != MaxRunningJobs {
		t.Errorf("closing ended %d, want %d", len(ended), MaxRunningJobs)
	}
}
