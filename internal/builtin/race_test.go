//go:build race

package builtin

const raceEnabled = true // everything takes ten times as long
