package schema

import (
	"encoding/json"
	"fmt"
	"slices"
)

const (
	// maxSchema bounds the size of a schema in bytes.
	maxSchema = 4 << 20
	// maxNodes bounds the compiled subschemas of one schema.
	maxNodes = 200_000
)

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	root    *node
	dynamic bool // some $dynamicRef is in it
	inner   []string
	bytes   int // that its patterns take
}

// PatternBytes is about how many bytes the compiled patterns of the schema take:
// whoever keeps many schemas of one author can bound them together.
func (s *Schema) PatternBytes() int { return s.bytes }

// InnerReferences returns what the schema's references say that lead into the
// schema itself, as "#/$defs/x" or "#": those of each subschema that counts, once
// each. A text like that in an enum or a default is none, nor does one count in
// a subschema with an $id, where # is that subschema.
func (s *Schema) InnerReferences() []string { return slices.Clone(s.inner) }

// Compile reads a JSON Schema of draft 2020-12, or of draft-07 when $schema
// says so. Of older drafts, draft-06 and draft-04 are read like draft-07 and
// 2019-09 like 2020-12.
//
// A schema is refused when it is not valid JSON, breaks the form of its
// keywords, has a reference that leads nowhere or to another document (none is
// ever loaded; the meta-schemas are known), refers to itself without going
// into a property or an item, is larger than 4 MiB or deeper than 256 levels, or
// has patterns that take more than 1 MiB when compiled. The error says which keyword, where, and what it should be.
func Compile(raw json.RawMessage) (*Schema, error) {
	return compile(raw, nil)
}

// compile is Compile with more documents that references may name.
func compile(raw []byte, extra map[string][]byte) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("reading schema: %d bytes are more than the %d allowed", len(raw), maxSchema)
	}
	doc, _, fault := parse(raw)
	if fault != nil {
		return nil, fmt.Errorf("reading schema: %w", fault)
	}
	if doc.kind != objectKind && doc.kind != boolKind {
		return nil, fmt.Errorf("compiling schema: it must be an object or a boolean, not %s", doc.describe())
	}
	c := compiler{library: newLibrary(extra), nodes: map[*value]*node{}}
	r, err := c.library.add(rootURI, doc, dialect{assertions: true})
	if err != nil {
		return nil, fmt.Errorf("compiling schema: %w", err)
	}
	c.whole = r
	root := c.enqueue(doc, r, "")
	if err := c.drain(); err != nil {
		return nil, fmt.Errorf("compiling schema: %w", err)
	}
	if err := findLoop(root); err != nil {
		return nil, fmt.Errorf("compiling schema: %w", err)
	}
	return &Schema{root: root, dynamic: c.dynamic, inner: c.inner, bytes: c.patterns.spent}, nil
}

// compiler turns the subschemas that are reachable from the root into nodes,
// one after another, so that no chain of references can exhaust the stack.
type compiler struct {
	library *library
	nodes   map[*value]*node
	queue   []job

	patterns patterns

	dynamic bool
	err     error
	whole   *resource // that of the root
	inner   []string  // references of whole into itself
}

type job struct {
	value *value
	node  *node
	at    string
}

// enqueue returns the node for v, which is filled in later.
func (c *compiler) enqueue(v *value, r *resource, at string) *node {
	if n := c.nodes[v]; n != nil {
		return n
	}
	if known := c.library.byRoot[v]; known != nil {
		r = known
	}
	n := &node{resource: r}
	c.nodes[v] = n
	c.queue = append(c.queue, job{v, n, at})
	return n
}

func (c *compiler) drain() error {
	for i := 0; i < len(c.queue); i++ {
		if i > maxNodes {
			return fmt.Errorf("more than %d subschemas", maxNodes)
		}
		j := c.queue[i]
		c.queue[i] = job{}
		k := keywords{compiler: c, value: j.value, node: j.node, at: j.at}
		k.compile()
		if c.err != nil {
			return c.err
		}
		if c.dynamic && i == len(c.queue)-1 {
			c.enqueueDynamic()
		}
	}
	return nil
}

// enqueueDynamic compiles what $dynamicRef may reach in every known resource.
func (c *compiler) enqueueDynamic() {
	for _, r := range c.library.byURI {
		for name, v := range r.dynamic {
			if r.nodes == nil {
				r.nodes = map[string]*node{}
			}
			if r.nodes[name] == nil {
				r.nodes[name] = c.enqueue(v, r, "#"+name)
			}
		}
	}
}
