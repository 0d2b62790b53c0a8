package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The bounds of a session's jobs.
const (
	MaxRunningJobs = 32      // at once; a further Start fails
	maxEndedJobs   = 64      // kept for their output; then the oldest is forgotten
	JobKeep        = 1 << 20 // bytes of output that a job keeps, the latest
)

// ErrNoJob says that no job has the id.
var ErrNoJob = errors.New("no such job")

// Jobs are the background commands of one session (ruling 9). A job outlives
// the call that started it, lasts until its last process has ended, and ends
// with Close at the latest, or with this process however that ends. The methods
// may be called from any goroutine.
type Jobs struct {
	r      *Runner
	ctx    context.Context // done when the session ends
	cancel context.CancelFunc

	mu     sync.Mutex
	last   int
	list   []*job // in the order of their start
	closed bool
	wait   sync.WaitGroup
}

// NewJobs makes the jobs of a session; their commands are run by r.
func NewJobs(r *Runner) *Jobs {
	ctx, cancel := context.WithCancel(context.Background())
	return &Jobs{r: r, ctx: ctx, cancel: cancel}
}

// A Job is a look at one job.
type Job struct {
	ID      string // such as job-1, unique in its session
	Owner   string // as given to Start
	Command string
	Dir     string
	Running bool
	Stopped bool // ended by Stop or Close
	Started time.Time
	Total   int64 // bytes of output so far
	// Result is how it ended, once it does not run; its Output is cut short.
	Result Result
	// Err is set when its keeper failed.
	Err error
}

// JobOutput is a part of a job's output.
type JobOutput struct {
	Job
	Text string
	// From and Next are where Text begins and ends in the whole output. From is
	// greater than what was asked for when that part is no longer kept.
	From, Next int64
}

// job is the record of one job. Its fields are guarded by Jobs.mu.
type job struct {
	Job
	stop context.CancelFunc
	done chan struct{}
	ring []byte // the latest output, up to twice JobKeep of which JobKeep counts
}

// Start starts c as a job. Owner is whatever the caller wants to find it by;
// the job has nothing to do with the caller otherwise. Of c, Output is called
// as well when it is set.
func (j *Jobs) Start(c Command, owner string) (Job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return Job{}, errors.New("the session has ended and takes no more jobs")
	}
	if running := j.count(); running >= MaxRunningJobs {
		return Job{}, &CommandError{fmt.Sprintf("%d jobs are running, which is the most: stop one with job_stop first", running)}
	}
	n := &job{done: make(chan struct{})}
	c.lingers = true
	c.Keep = 32 << 10 // the ring has the rest
	also := c.Output
	c.Output = func(b []byte) {
		j.output(n, b)
		if also != nil {
			also(b)
		}
	}
	x, err := j.r.launch(c)
	if err != nil {
		return Job{}, err
	}
	j.last++
	n.Job = Job{ID: "job-" + strconv.Itoa(j.last), Owner: owner, Command: c.Line, Dir: x.dir, Running: true, Started: x.started}
	if n.Command == "" {
		n.Command = strings.Join(c.Argv, " ")
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(j.ctx)
	j.list = append(j.list, n)
	j.wait.Go(func() {
		res, err := x.wait(ctx)
		n.stop()
		j.mu.Lock()
		defer j.mu.Unlock()
		n.Running, n.Stopped, n.Result, n.Err = false, res.Cancelled, res, err
		close(n.done)
		j.forget()
	})
	return n.Job, nil
}

// count counts the running jobs.
func (j *Jobs) count() (n int) {
	for _, x := range j.list {
		if x.Running {
			n++
		}
	}
	return n
}

// forget drops the oldest ended jobs beyond the bound.
func (j *Jobs) forget() {
	ended := len(j.list) - j.count()
	for i := 0; ended > maxEndedJobs; {
		if j.list[i].Running {
			i++
			continue
		}
		j.list = append(j.list[:i], j.list[i+1:]...)
		ended--
	}
}

func (j *Jobs) output(n *job, b []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n.Total += int64(len(b))
	if n.ring = append(n.ring, b...); len(n.ring) > 2*JobKeep {
		n.ring = append(n.ring[:0], n.ring[len(n.ring)-JobKeep:]...)
	}
}

// List gives all jobs that are known, in the order of their start.
func (j *Jobs) List() []Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := make([]Job, 0, len(j.list))
	for _, n := range j.list {
		list = append(list, n.Job)
	}
	return list
}

// Output gives what a job has written from byte since of its output on. With a
// wait it waits so long for the job to end, or until ctx is done.
func (j *Jobs) Output(ctx context.Context, id string, since int64, wait time.Duration) (JobOutput, error) {
	n, err := j.find(id)
	if err != nil {
		return JobOutput{}, err
	}
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-n.done:
		case <-timer.C:
		case <-ctx.Done():
			return JobOutput{}, ctx.Err()
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return n.since(since), nil
}

// since cuts the kept output at the borders of characters.
func (n *job) since(since int64) JobOutput {
	kept := n.ring[max(0, len(n.ring)-JobKeep):]
	first := n.Total - int64(len(kept))
	from := min(max(since, first), n.Total)
	text := kept[from-first:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text, from = text[1:], from+1
	}
	return JobOutput{Job: n.Job, Text: string(text), From: from, Next: n.Total}
}

// Stop ends a job and everything below it and waits for that, or until ctx is
// done. A job that has ended stays as it is.
func (j *Jobs) Stop(ctx context.Context, id string) (Job, error) {
	n, err := j.find(id)
	if err != nil {
		return Job{}, err
	}
	n.stop()
	select {
	case <-n.done:
	case <-ctx.Done():
		return Job{}, ctx.Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return n.Job, nil
}

func (j *Jobs) find(id string) (*job, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var running []string
	for _, n := range j.list {
		if n.ID == id {
			return n, nil
		}
		if n.Running {
			running = append(running, n.ID)
		}
	}
	known := "no job is running"
	if len(running) > 0 {
		known = "running: " + strings.Join(running, ", ")
	}
	return nil, fmt.Errorf("%w as %q (%s)", ErrNoJob, id, known)
}

// Close ends every job, waits until nothing of them is left, and gives those
// that it ended. No job can be started after it.
func (j *Jobs) Close() []Job {
	j.mu.Lock()
	j.closed = true
	var ended []*job
	for _, n := range j.list {
		if n.Running {
			ended = append(ended, n)
		}
	}
	j.mu.Unlock()
	j.cancel()
	j.wait.Wait()
	list := make([]Job, 0, len(ended))
	for _, n := range ended {
		list = append(list, n.Job)
	}
	return list
}
