// Package schema checks the arguments of tool calls against JSON Schema.
//
// It parses arguments strictly and without loss (no number ever becomes a
// float64), compiles schemas of draft-07 and 2020-12, reports every fault of a
// value in one go in words that a model can act on, applies the few coercions
// that lose nothing, and makes schemas from Go structs.
//
// It is not a general JSON Schema toolkit: it loads nothing from a network or
// a file, treats "format" and the content keywords as the annotations that the
// specification says they are by default, and fills in no defaults. It knows
// no tools and no providers. docs/design/schema.md says why the evaluator is
// our own.
//
// Everything here is safe on hostile input: schemas and values are bounded in
// size and depth, evaluation is bounded in steps, and what cannot be checked
// within the bounds is refused, never let through.
package schema
