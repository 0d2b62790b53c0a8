//go:build race

package sched_test

// The race detector makes a schedule five times slower.
const schedules = 600
