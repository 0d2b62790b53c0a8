package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What a flag's value is worth is looked at when its command runs, not while
// flags are parsed: only then is it known how to show an error.

// A number is the value of a flag that wants a whole number from 1 on. 0 is no
// value: the flag was not there.
type number struct {
	text string
	n    int
}

func (v *number) String() string     { return v.text }
func (v *number) Type() string       { return "int" }
func (v *number) Set(s string) error { *v = number{text: s}; return nil }

// read returns an error when the flag is there and its value is of no use.
func (v *number) read(flag string, there bool) error {
	n, err := strconv.Atoi(v.text)
	if there && (err != nil || n < 1) {
		return usage("%s %q: want a whole number from 1 on; without the flag there is no limit", flag, v.text)
	}
	v.n = n
	return nil
}

// A once is the value of a flag that holds the work itself: of two, one would be
// lost without a word.
type once struct {
	text  string
	times int
}

func (v *once) String() string     { return v.text }
func (v *once) Type() string       { return "string" }
func (v *once) Set(s string) error { v.text = s; v.times++; return nil }

func (v *once) read(flag string) error {
	if v.times > 1 {
		return usage("%s is there %d times: give it once", flag, v.times)
	}
	return nil
}

// duration reads a flag's value; a number alone is seconds. An empty one is 0.
func duration(flag, s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		d, err = time.ParseDuration(s + "s")
	}
	if err != nil || d <= 0 {
		return 0, usage("%s %q: want a duration such as 90s or 10m; a number alone is seconds", flag, s)
	}
	return d, nil
}

// mayBeEmpty are the flags that have words of their own for an empty value.
var mayBeEmpty = []string{"prompt", "eval"}

// noValue refuses flags without a value: a script whose variable is empty did not
// mean what happens without the flag.
func noValue(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		empty := slices.ContainsFunc(values, func(s string) bool { return strings.TrimSpace(s) == "" })
		switch {
		case err != nil || !empty || slices.Contains(mayBeEmpty, f.Name):
		case f.Name == "resume":
			err = usage("--resume: the id is empty; 'capstan sessions list' shows them, --continue takes the newest")
		default:
			err = usage("--%s: the value is empty: give one, or leave the flag out", f.Name)
		}
	})
	return err
}

// flagError words what cobra finds wrong with flags.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok { // a flag that is there or not; others look later
		return usage("--%s %q: want true or false", e.GetFlag().Name, e.GetValue())
	}
	e, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || e.GetSpecifiedShortnames() != "" {
		return usage("%w", err)
	}
	// Names of commands are what cobra has an ear for.
	names := &cobra.Command{SuggestionsMinimumDistance: suggestWithin}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	near := names.SuggestionsFor(e.GetSpecifiedName())
	for i := range near {
		near[i] = "--" + near[i]
	}
	return usage("%w%s", err, didYouMean(near))
}

// suggestWithin is how many letters a name may differ in and still be the one
// that was meant.
const suggestWithin = 2

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(near[:min(len(near), 3)], " or "))
}

// arguments wants so many of them, which it names.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s needs %s", cmd.CommandPath(), what)
		case len(args) > most:
			return usage("%s takes %s, and nothing after it: %q", cmd.CommandPath(), what, args[most])
		}
		return nil
	}
}
