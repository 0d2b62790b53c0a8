package responses

import (
	"bytes"
	"encoding/json"

	"capstan/internal/llm"
)

// slot is an item that is being written.
type slot struct {
	kind  string    // its type
	index llm.Loose // as sent; empty when there is none
	id    llm.Loose
	done  bool // output_item.done came
	found bool // in the list of the whole answer

	text    llm.Joiner
	pending []byte // what was not given out yet
	size    int    // of all text
	part    string // the part that the last piece belongs to

	call   llm.Loose // call_id
	name   llm.Loose
	args   []byte // the deltas
	whole  []byte // what was sent as the whole of them
	cut    bool   // the item is said to be incomplete
	differ bool   // two versions of the arguments came
	takes  int    // how many whole versions did

	state json.RawMessage
	phase llm.Loose
	image llm.Loose
	mime  string
}

// The kinds that are told apart.
const (
	message   = "message"
	reasoning = "reasoning"
	call      = "function_call"
	search    = "web_search_call"
	picture   = "image_generation_call"
)

// maxItems bounds the items of one answer.
const maxItems = 2000

// find returns the item of a kind that an event belongs to: with its index and
// its id, else its index, else its id, else the latest. Some servers change the
// id with each event, some give all items the same index.
func (d *decoder) find(kind string, index, id llm.Loose) *slot {
	var byIndex, byID, last *slot
	for i := len(d.slots) - 1; i >= 0; i-- {
		s := d.slots[i]
		if s.kind != kind {
			continue
		}
		sameIndex, sameID := index != "" && s.index == index, id != "" && s.id == id
		switch {
		case sameIndex && sameID:
			return s
		case sameIndex && byIndex == nil:
			byIndex = s
		case sameID && byID == nil:
			byID = s
		case last == nil:
			last = s
		}
	}
	switch {
	case byIndex != nil:
		return byIndex
	case byID != nil:
		return byID
	case index == "" && id == "":
		return last
	}
	return nil
}

// begin adds an item. It returns nil when there are too many.
func (d *decoder) begin(kind string, index, id llm.Loose) *slot {
	if len(d.slots) >= maxItems {
		d.Fail(d.client.endpoint.ProtocolError("the answer has more than %d items", maxItems))
		return nil
	}
	s := &slot{kind: kind, index: index, id: id}
	d.slots = append(d.slots, s)
	return s
}

// at is the item that a piece belongs to. One is begun when there is none, or
// only one that is done: not every server says that an item begins. It is nil
// for a piece of what is known to be done, which can tell nothing new.
func (d *decoder) at(kind string, index, id llm.Loose) *slot {
	s := d.find(kind, index, id)
	switch {
	case s == nil || s.done && (id == "" || s.id != id):
		return d.begin(kind, index, id)
	case s.done:
		return nil
	}
	return s
}

// added takes the beginning of an item.
func (d *decoder) added(e *event) {
	it := e.Item
	if it == nil {
		return
	}
	kind := string(it.Type)
	if s := d.find(kind, e.OutputIndex, it.ID); s != nil && s.index == e.OutputIndex && s.id == it.ID && it.ID != "" && !s.done && s.size == 0 && len(s.args) == 0 {
		return // said twice
	}
	if s := d.begin(kind, e.OutputIndex, it.ID); s != nil {
		s.call, s.name = it.CallID, it.Name
	}
}

// itemDone takes an item that is whole.
func (d *decoder) itemDone(e *event) {
	it := e.Item
	if it == nil {
		return
	}
	s := d.find(string(it.Type), e.OutputIndex, it.ID)
	if s != nil && s.done && (s.index != e.OutputIndex || !s.same(it)) {
		s = nil // another one, be it with an id that was used before
	}
	if s == nil {
		s = d.begin(string(it.Type), e.OutputIndex, it.ID)
	}
	if s != nil {
		d.fill(s, it)
		s.done = true
		d.advance()
	}
}

// same reports whether an item is what s holds, by one of its ids.
func (s *slot) same(it *item) bool {
	return it.ID != "" && it.ID == s.id || it.CallID != "" && it.CallID == s.call
}

// fill takes what a whole item tells and its pieces did not.
func (d *decoder) fill(s *slot, it *item) {
	if s.id == "" {
		s.id = it.ID
	}
	if it.CallID != "" {
		s.call = it.CallID
	}
	if it.Name != "" {
		s.name = it.Name
	}
	switch s.kind {
	case call:
		s.cut = s.cut || it.Status == "incomplete"
		s.take(it.Arguments.Text)
	case message:
		s.phase = it.Phase
		if s.size == 0 {
			d.write(s, it.Content.join(""), "")
		}
	case reasoning:
		if s.size == 0 {
			text := it.Summary.join("\n\n")
			if len(text) == 0 {
				text = it.Content.join("\n\n")
			}
			d.write(s, text, "")
		}
		s.state = it.state()
	case search:
		s.state = it.state()
	case picture:
		s.image, s.mime = it.Result, "image/png"
		if it.Format != "" {
			s.mime = "image/" + string(it.Format)
		}
	}
	d.size += len(s.state) + len(s.image)
}

// maxVersions is how many versions of a call's arguments are compared, whatever
// their size.
const maxVersions = 8

// take takes a whole version of a call's arguments. Of several the complete one
// is kept, then the longer: {} is sent where a server lost them.
func (s *slot) take(args []byte) {
	if len(args) == 0 {
		return
	}
	if s.takes++; s.takes > maxVersions && len(args) < len(s.whole)/4 {
		return // to compare it would cost more than it did to send
	}
	if len(s.whole) > 0 {
		s.differ = s.differ || !equal(s.whole, args)
		if !better(args, s.whole) {
			return
		}
	}
	s.whole = bytes.Clone(args)
}

// arguments are the best version of them.
func (s *slot) arguments() []byte {
	switch {
	case len(s.whole) == 0:
		return s.args
	case len(s.args) == 0:
		return s.whole
	}
	s.differ = s.differ || !equal(s.args, s.whole)
	if better(s.whole, s.args) {
		return s.whole
	}
	return s.args
}

// better reports whether a is to be preferred to b, which came before it.
func better(a, b []byte) bool {
	if empty(a) != empty(b) {
		return empty(b)
	}
	if json.Valid(a) != json.Valid(b) {
		return json.Valid(a)
	}
	return len(a) >= len(b)
}

func empty(args []byte) bool {
	s := string(bytes.Join(bytes.Fields(args), nil))
	return s == "" || s == "{}"
}

// equal reports whether two versions are the same but for white space.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// reconcile compares what was streamed with the list of the whole answer, and
// takes what was not streamed: once, whatever ids the list has.
func (d *decoder) reconcile(list []item) {
	var rest []*item
	for i := range list {
		it := &list[i]
		if s := d.unfound(it, (*slot).same); s != nil {
			s.found = true
			d.fill(s, it)
			continue
		}
		rest = append(rest, it)
	}
	for _, it := range rest {
		s := d.unfound(it, func(s *slot, it *item) bool { return s.kind != call || s.name == it.Name || s.name == "" })
		if s == nil {
			if s = d.begin(string(it.Type), "", it.ID); s == nil {
				return
			}
		}
		s.found = true
		d.fill(s, it)
	}
}

// unfound is the first item of its type that is in the list no more than once
// and that is so.
func (d *decoder) unfound(it *item, is func(*slot, *item) bool) *slot {
	for _, s := range d.slots {
		if !s.found && s.kind == string(it.Type) && is(s, it) {
			return s
		}
	}
	return nil
}
