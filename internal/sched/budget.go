package sched

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// budget cuts the text of a result to what its reader is given: a program up
// to NestedBytes, a model up to ModelChars (ruling 16). What is cut off lies in
// a file that the result names.
func (rt *Runtime) budget(j *job, r *tool.Result) {
	limit := rt.opt.ModelChars
	if j.nested {
		limit = rt.opt.NestedBytes
		bound(r, limit)
	}
	var size int
	for _, p := range r.Parts {
		size += len(p.Text) + 1
	}
	if size <= limit {
		return
	}
	whole := msg.JoinText(r.Parts)
	if length := len(whole); length <= limit || !j.nested && utf8.RuneCountInString(whole) <= limit {
		return
	}
	file := r.File
	var lost string
	if file == "" {
		file, lost = rt.spill(j, whole)
	}
	head := limit / 2
	if r.Status != tool.Success {
		head = limit / 5 // of a failure, the end says why
	}
	cut, left := headTail(whole, head, limit-head, j.nested)
	where := "the whole is in " + file
	if file == "" {
		where = lost
	}
	text := cut[0] + fmt.Sprintf("\n[… %s left out; %s …]\n", left, where) + cut[1]
	parts := []msg.Part{msg.TextPart(text)}
	for _, p := range r.Parts {
		if p.Kind != msg.Text {
			parts = append(parts, p)
		}
	}
	r.Parts, r.Truncated, r.File = parts, true, file
}

// bound keeps what is not text of a nested result under the same limit: a
// value or a picture cannot be cut, so what is too big is left out, and the
// result says so.
func bound(r *tool.Result, limit int) {
	if len(r.Data) > limit {
		r.Parts = append(r.Parts, leftOut("the structured content", len(r.Data), limit))
		r.Data, r.Truncated = nil, true
	}
	room, copied := limit, false
	for i, p := range r.Parts {
		if room -= len(p.Data); room >= 0 {
			continue
		}
		room += len(p.Data)
		if !copied {
			r.Parts, copied = slices.Clone(r.Parts), true
		}
		r.Parts[i] = leftOut(fmt.Sprintf("a part of type %s", p.MIMEType), len(p.Data), limit)
		r.Truncated = true
	}
}

func leftOut(what string, size, limit int) msg.Part {
	return msg.TextPart(fmt.Sprintf("[%s was left out: %d bytes, more than there is room for of %d]", what, size, limit))
}

func (rt *Runtime) spill(j *job, text string) (file, lost string) {
	if rt.opt.Spill == nil {
		return "", "the rest was not kept"
	}
	file, err := rt.opt.Spill(j.call.ID, text)
	if err != nil {
		return "", fmt.Sprintf("the rest could not be kept: %v", err)
	}
	return file, ""
}

// headTail returns the beginning and the end of a text that is longer than
// head+tail, never splitting a character, and says how much it left out. The
// sizes are bytes or characters.
func headTail(s string, head, tail int, bytes bool) (ends [2]string, left string) {
	from, to := head, len(s)-tail
	unit := "bytes"
	if !bytes {
		from, to, unit = runeOffset(s, head), len(s)-tailOffset(s, tail), "characters"
	}
	from, to = charBefore(s, from), charAfter(s, to)
	n := to - from
	if !bytes {
		n = utf8.RuneCountInString(s[from:to])
	}
	lines := strings.Count(s[from:to], "\n")
	return [2]string{s[:from], s[to:]}, fmt.Sprintf("%d %s, %d lines", n, unit, lines)
}

// charBefore and charAfter move a cut out of the middle of a character. What is
// not UTF-8 has no characters, so they do not look far.
func charBefore(s string, i int) int {
	for back := range min(i, utf8.UTFMax-1) + 1 {
		if utf8.RuneStart(s[i-back]) {
			return i - back
		}
	}
	return i
}

func charAfter(s string, i int) int {
	for on := range utf8.UTFMax {
		if i+on == len(s) || utf8.RuneStart(s[i+on]) {
			return i + on
		}
	}
	return i
}

// runeOffset is the byte length of the first n characters.
func runeOffset(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// tailOffset is the byte length of the last n characters.
func tailOffset(s string, n int) int {
	i := len(s)
	for ; n > 0 && i > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(s[:i])
		i -= size
	}
	return len(s) - i
}
