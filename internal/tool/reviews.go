package tool

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sync"
)

// Reviews remembers which definitions the model of one conversation was last
// told, whole: by a search, or in exec's description. A call of such a tool is
// refused as STALE_TOOL once its definition is another one, since the model wrote
// it by the old one. What was never told is not remembered; its calls are held to
// the schema that is in force. The executor of each agent has one. The zero
// Reviews is empty, a nil one remembers nothing. It is safe for concurrent use.
type Reviews struct {
	mu       sync.Mutex
	told     map[string]review
	declared *View // whose descriptions were told last
}

// A review is one definition as it was told. After a resume it is known by its
// text alone.
type review struct {
	entry *Entry
	text  [sha256.Size]byte
}

// A Documenter's description holds the definitions of other tools, as exec's does.
type Documenter interface{ Documents(v *View) []*Entry }

// Tell remembers definitions that the model is given whole.
func (r *Reviews) Tell(entries ...*Entry) {
	if r == nil || len(entries) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.keep(e.spec.Name, review{entry: e})
	}
}

func (r *Reviews) keep(name string, w review) {
	if r.told == nil {
		r.told = map[string]review{}
	}
	r.told[name] = w
}

// Declare remembers what the declarations of a view tell of other tools than the
// declared ones. It costs nothing for the view that was declared last.
func (r *Reviews) Declare(v *View) {
	if r == nil {
		return
	}
	r.mu.Lock()
	same := r.declared == v
	r.declared = v
	r.mu.Unlock()
	if same {
		return
	}
	for _, e := range v.names {
		if d, ok := e.tool.(Documenter); ok && v.reach[e].direct {
			r.Tell(d.Documents(v)...)
		}
	}
}

// Recall remembers what an earlier run of the conversation was told of a tool, as
// its record has it.
func (r *Reviews) Recall(name, description string, input json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(name, review{text: toldText(description, input)})
}

// Inherit takes over what another conversation was told: a fork begins with it.
func (r *Reviews) Inherit(from *Reviews) {
	from.mu.Lock()
	var all []review
	var names []string
	for name, w := range from.told {
		names, all = append(names, name), append(all, w)
	}
	from.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range all {
		r.keep(names[i], w)
	}
}

// Stale says whether the model was last told another definition of a tool than
// this one.
func (r *Reviews) Stale(e *Entry) bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w, known := r.told[e.spec.Name]
	switch {
	case !known:
		return false
	case w.entry != nil:
		return !w.entry.Same(e)
	case w.text != toldText(e.spec.Description, e.spec.Input):
		return true
	}
	r.told[e.spec.Name] = review{entry: e} // from here on all of it counts
	return false
}

// toldText stands for the two things that a search tells in every mode. How JSON
// was written does not matter. Bytes that are no text become what they become in
// the answer of a search: one character for each byte of a description, one for a
// row of them in a schema.
func toldText(description string, input json.RawMessage) [sha256.Size]byte {
	var schema any
	dec := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(input, []byte("\uFFFD"))))
	dec.UseNumber()
	if !json.Valid(input) || dec.Decode(&schema) != nil {
		schema = nil
	}
	text, _ := json.Marshal([]any{string([]rune(description)), schema}) // made of JSON: cannot fail
	return sha256.Sum256(text)
}
