package sched

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// maxNestedBytes is the most that one nested result carries (ruling 16), which
// is also the most that the sandbox takes.
const maxNestedBytes = 16 << 20

// maxNestedFailure is the most that the message of a nested failure has, in
// bytes. It travels as a JSON string, in which a byte can become six.
const maxNestedFailure = 1 << 20

// maxUncut is the most that a model is given of a result whose tool bounds it
// itself, in characters.
const maxUncut = 256 << 10

// budget cuts the text of a result to what its reader is given: a program up
// to NestedBytes, a model up to ModelChars (ruling 16). What is cut off lies in
// a file that the result names.
func (rt *Runtime) budget(j *job, r *tool.Result) {
	limit, before := rt.opt.ModelChars, r.Truncated
	if j.nested {
		limit = rt.opt.NestedBytes
		bound(r, limit)
		if r.Status != tool.Success {
			limit = min(limit, maxNestedFailure)
		}
	} else if r.Uncut {
		limit = max(limit, maxUncut)
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
	parts := []msg.Part{msg.TextPart(rt.cut(j, r, whole, limit, before))}
	for _, p := range r.Parts {
		if p.Kind != msg.Text {
			parts = append(parts, p)
		}
	}
	r.Parts, r.Truncated = parts, true
}

// noticeBytes is what the notice of a cut takes beside the name of the file.
const noticeBytes = 128

// cut returns the head and the tail of a text, with a notice between. The
// whole goes to a file, if the tool has not kept it itself. before says that
// the tool has cut it already.
func (rt *Runtime) cut(j *job, r *tool.Result, whole string, limit int, before bool) string {
	where := ""
	if r.File == "" {
		r.File, where = rt.spill(j, whole)
	}
	switch {
	case r.File != "" && before:
		where = "more of it is in " + r.File
	case r.File != "":
		where = "the whole is in " + r.File
	}
	if j.nested { // the limit is one of bytes that nothing may pass, the notice neither
		limit = max(limit-len(where)-noticeBytes, 0)
	}
	head := limit / 2
	if r.Status != tool.Success {
		head = limit / 5 // of a failure, the end says why
	}
	ends, left := headTail(whole, head, limit-head, j.nested)
	if before {
		left = "more than " + left
	}
	return ends[0] + fmt.Sprintf("\n[… %s left out; %s …]\n", left, where) + ends[1]
}

// bound keeps what is not text of a nested result under the same limit: a
// value or a picture cannot be cut, so what is too big is left out, and the
// result says so. They travel in one message, pictures in base64.
func bound(r *tool.Result, limit int) {
	limit -= limit / 64 // for what else is in the message
	room := limit
	if len(r.Data) > room {
		r.Parts = append(r.Parts, leftOut("the structured content", len(r.Data), room))
		r.Data, r.Truncated = nil, true
	}
	room -= len(r.Data)
	copied := false
	for i, p := range r.Parts {
		size := base64.StdEncoding.EncodedLen(len(p.Data))
		if size <= room {
			room -= size
			continue
		}
		if !copied {
			r.Parts, copied = slices.Clone(r.Parts), true
		}
		r.Parts[i] = leftOut(fmt.Sprintf("a part of type %s, which travels in base64,", p.MIMEType), size, limit)
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
