package openai

import (
	"encoding/json"

	"capstan/internal/llm"
	"capstan/internal/msg"
)

// callDelta is a piece of a call. Everything may be missing, and the order in
// which id, name and arguments come is free.
type callDelta struct {
	Index    *llm.Loose `json:"index"`
	ID       llm.Loose  `json:"id"`
	Function struct {
		Name      llm.Loose `json:"name"`
		Arguments llm.Piece `json:"arguments"`
	} `json:"function"`
}

// callDeltas is a list of pieces; some servers send a single one instead.
type callDeltas []callDelta

func (c *callDeltas) UnmarshalJSON(raw []byte) error {
	*c = nil
	if raw[0] == '{' {
		*c = make(callDeltas, 1)
		return json.Unmarshal(raw, &(*c)[0])
	}
	return llm.List(raw, llm.MaxPieces, (*[]callDelta)(c))
}

// slot is a call that is being written.
type slot struct {
	index string // as sent; empty when there is none
	id    string
	name  string
	args  []byte
	whole bool // the arguments came as an object
	shape shape
}

// assembler puts the pieces of calls together. A piece belongs to the call with
// its index, else with its id, else to the one at its place or the last one; a
// piece with a name may begin a new one all the same.
type assembler struct {
	slots    []*slot
	request  *llm.Request
	names    *llm.Names
	declared map[string]*msg.Declaration // by the name on the wire
}

func (a *assembler) init(r *llm.Request, names *llm.Names) {
	a.request, a.names = r, names
	a.declared = make(map[string]*msg.Declaration, len(r.Tools))
	for i := range r.Tools {
		a.declared[names.Wire(r.Tools[i].Name)] = &r.Tools[i]
	}
}

// maxCalls bounds the calls of one answer.
const maxCalls = 1000

// add takes the piece that stands at position in a list of so many. It returns
// nil when there are too many calls.
func (a *assembler) add(position, of int, d *callDelta) *slot {
	index := ""
	if d.Index != nil {
		index = string(*d.Index)
	}
	s := a.find(index, position, of, d)
	if s == nil || a.begins(s, d) {
		if len(a.slots) >= maxCalls {
			return nil
		}
		s = &slot{index: index}
		a.slots = append(a.slots, s)
	}
	if d.ID != "" && s.id == "" {
		s.id = string(d.ID)
	}
	a.addName(s, string(d.Function.Name))
	s.addArgs(d.Function.Arguments)
	return s
}

// find returns the latest call that the piece may belong to.
func (a *assembler) find(index string, position, of int, d *callDelta) *slot {
	for i := len(a.slots) - 1; i >= 0; i-- {
		s := a.slots[i]
		switch {
		case index != "":
			if s.index == index {
				return s
			}
		case d.ID != "":
			if s.id == string(d.ID) {
				return s
			}
		}
	}
	switch {
	case index != "" || d.ID != "":
		return nil
	case of > 1 && d.Function.Name == "":
		if position < len(a.slots) {
			return a.slots[position]
		}
		return nil
	case len(a.slots) > 0:
		return a.slots[len(a.slots)-1]
	}
	return nil
}

// begins reports whether the piece begins a call of its own though its index or
// its place says that it belongs to s.
func (a *assembler) begins(s *slot, d *callDelta) bool {
	name := string(d.Function.Name)
	switch {
	case name == "" || s.name == "":
		return false // a continuation, or the name that was still missing
	case d.ID != "" && s.id != "" && string(d.ID) != s.id:
		return true // an index used twice
	case len(d.Function.Arguments.Text) > 0 && s.shape.state == shapeWhole:
		// An id used twice, or no id at all. Arguments that are whole take
		// nothing more.
		return !(s.whole && name == s.name && string(s.args) == string(d.Function.Arguments.Text))
	case name != s.name:
		// Either the rest of a name or another call.
		return a.declared[s.name] != nil && a.declared[name] != nil && a.declared[s.name+name] == nil
	}
	return false
}

// addName takes a name that is sent once, again with each piece, or in parts.
func (a *assembler) addName(s *slot, name string) {
	switch {
	case name == "" || name == s.name:
	case len(name) > len(s.name) && name[:len(s.name)] == s.name:
		s.name = name // all of it so far
	default:
		s.name += name
	}
}

func (s *slot) addArgs(p llm.Piece) {
	if p.Whole && len(p.Text) > 0 && p.Text[0] == '{' {
		if s.shape.state != shapeWhole {
			s.args = append(s.args[:0], p.Text...)
			s.whole, s.shape = true, shape{state: shapeWhole}
		}
		return
	}
	s.args = append(s.args, p.Text...)
	if s.shape.read(p.Text) {
		s.shape.state = shapeOther
		if json.Valid(s.args) {
			s.shape.state = shapeWhole
		}
	}
}

// finish returns the calls. cut says that the answer ended at its limit.
func (a *assembler) finish(cut bool) []msg.Call {
	var out []msg.Call
	ids := llm.NewIDs(a.request.Messages)
	for i, s := range a.slots {
		var j llm.Joiner
		args := j.Push(s.args) + j.Flush()
		if s.name == "" && (args == "" || args == "{}") {
			continue // a phantom that some servers send before or after a call
		}
		out = append(out, a.call(ids, s.id, s.name, args, cut && i == len(a.slots)-1))
	}
	return out
}

func (a *assembler) call(ids *llm.IDs, id, name, args string, cut bool) msg.Call {
	return llm.Finished(ids.Take(id), a.names.Canonical(name), args, a.declared[name], cut)
}

// leaked returns calls that were found in the text.
func (a *assembler) leaked(found []leakedCall) []msg.Call {
	ids := llm.NewIDs(a.request.Messages)
	var out []msg.Call
	for _, f := range found {
		out = append(out, a.call(ids, "", f.name, f.args, false))
	}
	return out
}

// details collects OpenRouter's reasoning_details. Pieces of the same kind and
// index are one detail that was cut.
type details struct {
	list []*detail
	size int
}

type detail struct {
	fields map[string]json.RawMessage
	key    string // of the field that grows: text or summary
	text   []byte
}

func (d *details) add(pieces []json.RawMessage) {
	for _, raw := range pieces {
		d.size += len(raw)
		var m map[string]json.RawMessage
		if json.Unmarshal(raw, &m) != nil || m == nil {
			continue
		}
		if n := len(d.list); n == 0 || !d.list[n-1].continues(m) {
			d.list = append(d.list, &detail{fields: map[string]json.RawMessage{}})
		}
		d.list[len(d.list)-1].take(m)
	}
}

// continues reports whether m is more of the same. Encrypted data comes whole.
func (d *detail) continues(m map[string]json.RawMessage) bool {
	return string(d.fields["type"]) == string(m["type"]) && string(d.fields["index"]) == string(m["index"]) &&
		string(m["type"]) != `"reasoning.encrypted"`
}

func (d *detail) take(m map[string]json.RawMessage) {
	for k, v := range m {
		if k == "text" || k == "summary" {
			var s llm.Piece // which may end in the middle of a character
			if json.Unmarshal(v, &s) == nil && !s.Whole && string(v) != "null" {
				d.key, d.text = k, append(d.text, s.Text...)
				continue
			}
		}
		if _, had := d.fields[k]; !had || string(v) != "null" {
			d.fields[k] = v
		}
	}
}

// json is the list as it goes back; nil when there is none.
func (d *details) json() (json.RawMessage, error) {
	if len(d.list) == 0 {
		return nil, nil
	}
	all := make([]map[string]json.RawMessage, 0, len(d.list))
	for _, x := range d.list {
		if x.key != "" {
			var j llm.Joiner
			text, err := json.Marshal(j.Push(x.text) + j.Flush())
			if err != nil {
				return nil, err
			}
			x.fields[x.key] = text
		}
		all = append(all, x.fields)
	}
	return json.Marshal(all)
}
