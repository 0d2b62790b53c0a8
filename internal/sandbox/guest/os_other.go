//go:build !linux

package guest

import "time"

const mapNoReserve = 0

func nap(d time.Duration) { time.Sleep(d) }
