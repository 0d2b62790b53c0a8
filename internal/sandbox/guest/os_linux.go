package guest

import (
	"syscall"
	"time"
)

const mapNoReserve = syscall.MAP_NORESERVE

// nap sleeps for d or a little less. It blocks a thread of its own, which costs
// less at the start of a process than Go's timers and their poller.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil)
}
