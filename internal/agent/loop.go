package agent

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"capstan/internal/msg"
	"capstan/internal/tool"
)

// When a model repeats itself (ruling 12). A round is a turn, or up to
// maxPeriod turns that are gone through again and again. Turns are the same when
// they make the same calls and get the same results: polling something that
// changes is no loop. Turns of which every call fails with the same error are a
// loop of their own kind, whatever the arguments, but it takes longer: trying
// out is legitimate.
const (
	maxPeriod   = 3
	roundsTold  = 3 // equal rounds after which the model is told
	roundsEnd   = 5 // and after which the run ends
	errorsTold  = 5 // turns in a row with nothing but the same error
	errorsEnd   = 10
	maxLoopTold = 3 // times that a run is told of loops; the next one ends it

	// patience is how many rounds with a call that took long count as one: a
	// command that sleeps and looks is a wait, but not one without end. So waiting
	// alone is told of after 12 equal rounds and ends the run after 20.
	patience = 4
)

// A pace is what it means that a call took long.
type pace int

const (
	working   pace = iota // nothing, or it did not
	lingering             // perhaps it waited for what happens elsewhere
	waiting               // that is what it was for
)

var seed = maphash.MakeSeed()

// A sample is what the calls of one turn were. A program is seen through: what
// counts are the calls that it made and what it printed, not its text.
type sample struct {
	calls   []seen
	parents map[string]bool // calls that made calls
	slow    bool            // one of them took long
}

// seen is one call as its turn is compared by it.
type seen struct {
	id      string
	call    uint64 // name and arguments
	result  uint64 // status, code and text
	failure uint64 // name, code and text less its numbers; 0 unless it failed
	say     string // for a nudge
}

func (s *sample) add(c *tool.Call, r *tool.Result, p pace) {
	if c.ParentID != "" {
		if s.parents == nil {
			s.parents = map[string]bool{}
		}
		s.parents[c.ParentID] = true
	}
	v := seen{id: c.ID, result: digest(c.Name, r)}
	s.slow = s.slow || p != working
	if p == waiting { // time passed, which is what the call was for
		v.result = maphash.String(seed, c.ID)
	}
	v.call = maphash.String(seed, c.Name+"\x00"+ordered(c.Args))
	if r.Status != tool.Success {
		v.failure = maphash.String(seed, c.Name+"\x00"+r.Code+"\x00"+numberless(r.Text()))
	}
	if len(s.calls) < maxSaid {
		v.say = clip(c.Name+" "+string(c.Args), 160)
		if r.Status != tool.Success {
			v.say += ": " + clip(r.Text(), 160)
		}
	}
	s.calls = append(s.calls, v)
}

// ordered returns arguments with the names of each object in order. What is no
// JSON is returned as it is.
func ordered(args []byte) string {
	v := jsontext.Value(bytes.Clone(args))
	if v.Format(jsontext.ReorderRawObjects(true)) != nil {
		return string(args)
	}
	return string(v)
}

// maxSaid bounds how many calls of a turn a nudge can name.
const maxSaid = 8

// digest is what came of a call. The name of a file that holds the whole of a
// long text is not part of it: that is another one each time.
func digest(name string, r *tool.Result) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, s := range []string{name, string(r.Status), r.Code} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		text := p.Text
		if r.File != "" && p.Kind == msg.Text {
			text = strings.ReplaceAll(text, r.File, "")
		}
		h.WriteString(string(p.Kind))
		h.WriteString(text)
		h.WriteString(p.URI)
		h.Write(p.Data)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// numberless returns the beginning and the end of a text with each row of digits
// replaced, so that errors that differ in a position or a counter only are
// equal.
func numberless(s string) string {
	const most = 2000
	if len(s) > 2*most {
		s = s[:most] + s[len(s)-most:]
	}
	var b strings.Builder
	in := false
	for _, c := range s {
		digit := '0' <= c && c <= '9'
		switch {
		case !digit:
			b.WriteRune(c)
		case !in:
			b.WriteByte('#')
		}
		in = digit
	}
	return b.String()
}

// A fingerprint is a sample in a form that can be compared.
type fingerprint struct {
	does  uint64 // the calls and their results, in any order, each once
	fails uint64 // their errors, when all failed; else 0
	slow  bool   // one of the calls took long
	say   string
}

func (s *sample) fingerprint() fingerprint {
	var does, fails []uint64
	var said []string
	all := true
	for _, c := range s.calls {
		if s.parents[c.id] {
			does = append(does, c.result)
			continue
		}
		does = append(does, mix(c.call, c.result))
		fails = append(fails, c.failure)
		all = all && c.failure != 0
		if c.say != "" && len(said) < 3 {
			said = append(said, c.say)
		}
	}
	f := fingerprint{does: combine(does), slow: s.slow, say: strings.Join(said, "; ")}
	if all && len(fails) > 0 {
		f.fails = combine(fails)
	}
	return f
}

func mix(a, b uint64) uint64 {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], a)
	binary.LittleEndian.PutUint64(raw[8:], b)
	return maphash.Bytes(seed, raw[:])
}

// combine returns a number that depends on which hashes there are, not on
// their order or how often. It is never 0.
func combine(hashes []uint64) uint64 {
	slices.SortFunc(hashes, cmp.Compare)
	var b bytes.Buffer
	for _, h := range slices.Compact(hashes) {
		var raw [8]byte
		binary.LittleEndian.PutUint64(raw[:], h)
		b.Write(raw[:])
	}
	return maphash.Bytes(seed, b.Bytes()) | 1
}

// A tally counts rounds, those in which a call took long apart.
type tally struct{ quick, slow int }

func (t *tally) add(slow bool) {
	if slow {
		t.slow++
	} else {
		t.quick++
	}
}

func (t tally) all() int { return t.quick + t.slow }

// weight is what the rounds count.
func (t tally) weight() int { return t.quick + t.slow/patience }

// reached reports whether the latest round made the weight n, which before was
// less.
func (t tally) reached(before tally, n int) bool { return before.weight() < n && t.weight() >= n }

// A detector finds loops across the turns of one run.
type detector struct {
	last   []fingerprint // the latest turns with calls
	errors tally         // turns in a row with the same errors only
	before tally         // errors before the latest turn
	told   int
}

// see takes the calls of a turn. It returns what the model should be told, or
// why the run has to end.
func (d *detector) see(s sample) (tell, end string) {
	if len(s.calls) == 0 {
		return "", ""
	}
	f := s.fingerprint()
	if n := len(d.last); f.fails == 0 || n == 0 || f.fails != d.last[n-1].fails {
		d.errors = tally{}
	}
	if d.before = d.errors; f.fails != 0 {
		d.errors.add(f.slow)
	}
	d.last = append(d.last, f)
	if n := len(d.last) - maxPeriod*roundsEnd*patience; n > 0 {
		d.last = slices.Delete(d.last, 0, n)
	}
	what, told, over := d.repeated()
	switch {
	case over || told && d.told == maxLoopTold:
		return "", what
	case told:
		d.told++
		return what, ""
	}
	return "", ""
}

// forget begins anew, but for how often the model was told.
func (d *detector) forget() { d.last, d.errors = nil, tally{} }

// repeated says what was repeated, and whether it is time to tell the model or
// to end the run.
func (d *detector) repeated() (what string, told, over bool) {
	last := d.last[len(d.last)-1]
	for period := 1; period <= maxPeriod; period++ {
		rounds, before := d.rounds(period)
		over := rounds.weight() >= roundsEnd
		if !over && !rounds.reached(before, roundsTold) {
			continue
		}
		if period == 1 {
			return fmt.Sprintf("the same calls with the same results %d times in a row: %s", rounds.all(), last.say), true, over
		}
		var said []string
		for _, f := range d.last[len(d.last)-period:] {
			said = append(said, f.say)
		}
		return fmt.Sprintf("the same %d turns with the same results %d times in a row: %s", period, rounds.all(), strings.Join(said, ", then ")), true, over
	}
	if over := d.errors.weight() >= errorsEnd; over || d.errors.reached(d.before, errorsTold) {
		return fmt.Sprintf("nothing but the same error in %d turns in a row, the last time: %s", d.errors.all(), last.say), true, over
	}
	return "", false, false
}

// rounds counts how often the latest turns were gone through without a change,
// with the latest round and before it. Of a round that is not whole it says
// nothing: the one before it was looked at when it was.
func (d *detector) rounds(period int) (now, before tally) {
	equal, n := 0, len(d.last)
	for i := n - 1; i >= period && d.last[i].does == d.last[i-period].does; i-- {
		equal++
	}
	if equal%period != 0 {
		return now, before
	}
	for end := n - equal; end <= n; end += period {
		before = now
		round := d.last[max(0, end-period):end] // the first turns may be fewer than a period
		now.add(slices.ContainsFunc(round, func(f fingerprint) bool { return f.slow }))
	}
	return now, before
}

// clip returns at most n characters of s, on one line.
func clip(s string, n int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s[:min(len(s), 8*n)], "")), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
