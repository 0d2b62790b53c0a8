//go:build !race

package sched_test

const schedules = 2500
