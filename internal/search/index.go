// Package search is the index behind tool_search: documents that describe
// tools go in, ranked names come out.
//
// It ranks by words (BM25 over weighted fields) in any script. It knows no
// tools, no registry and no scopes: the caller says which names may be shown.
// It loads no model, opens no file and speaks to nobody.
//
// Everything in a document comes from a server that may be hostile, and a query
// comes from a model: each has bounds, the order of the hits depends on nothing
// but the documents and the query, and whatever is too long is cut, not refused.
package search

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Document is what is known about one tool. Only Name is needed.
type Document struct {
	// Name is the registered name, which hits carry. A second document of the
	// same name is ignored.
	Name string
	// Short is the name that the tool's server gave it, without the prefix that
	// makes it unique; empty means Name.
	Short string
	// Title is the name for people, Hint words that the tool's author wants it
	// to be found by.
	Title, Hint string
	// Server and ServerDescription say where the tool is from.
	Server, ServerDescription string
	// Description is the tool's own; its first sentence counts more.
	Description string
	// Schema is the JSON Schema of the arguments: names and descriptions of
	// properties and the values of enums are found wherever they stand in it.
	// What cannot be parsed is left out from there on.
	Schema []byte
}

// Index holds documents by source. The zero value is empty and ready for use.
// All methods may be called at the same time from any goroutine: a search sees
// the documents of a source from before or after a replacement, never a mixture.
type Index struct {
	weights *weights // nil: the fitted ones

	write sync.Mutex // held while a new state is made
	state atomic.Pointer[state]
}

// state is all that a search looks at. It never changes.
type state struct {
	segments []*segment // by source
	docs     int
}

// Replace makes docs the documents of source, which is the name of a server or
// any other word that the caller chooses; none removes the source. The cost is
// that of the given documents, not of the index.
func (x *Index) Replace(source string, docs []Document) {
	var made *segment
	if len(docs) > 0 {
		made = build(source, docs, x.tuning()) // not under the lock: it is most of the work
	}
	x.write.Lock()
	defer x.write.Unlock()
	next := &state{}
	if old := x.state.Load(); old != nil {
		next.segments = slices.DeleteFunc(slices.Clone(old.segments), func(s *segment) bool { return s.source == source })
	}
	if made != nil {
		at, _ := slices.BinarySearchFunc(next.segments, source, func(s *segment, source string) int { return cmp.Compare(s.source, source) })
		next.segments = slices.Insert(next.segments, at, made)
	}
	for _, s := range next.segments {
		next.docs += len(s.docs)
	}
	x.state.Store(next)
}

// Len is the number of documents.
func (x *Index) Len() int {
	if s := x.state.Load(); s != nil {
		return s.docs
	}
	return 0
}

func (x *Index) tuning() *weights {
	if x.weights != nil {
		return x.weights
	}
	return &fitted
}
