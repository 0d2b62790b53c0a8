package search

// field is a part of a document that has a weight of its own.
type field uint8

const (
	fieldName field = iota
	fieldTitle
	fieldServer
	fieldLead // first sentence of the description, and the hint
	fieldRest
	fieldParam
	fieldParamText
	fieldEnum
	fields
)

// weights are the numbers that were fitted; docs/design/search.md says how.
type weights struct {
	// BM25: how soon more of a word stops to count, and how much a long field
	// takes from its words.
	k1, b float32
	// field is what a word in a field counts, unbroken the same for Chinese and
	// the other scripts that have no spaces. They differ: where words are pairs
	// of characters, long text is needed to tell tools apart.
	field, unbroken [fields]float32
	// typical is the length of each field in words. It is fixed, not measured
	// on the documents, so that an update costs no more than its own documents.
	typical [fields]float32

	single  float32 // a Han character alone, of a pair's weight
	synonym float32 // another verb of the group, of the word's weight
	joined  float32 // two neighbours written as one word
	quoted  float32 // a word in quotes
	near    float32 // a word of the index that the query's may have meant
	repeats float32 // saturation: n times counts (1+repeats)n/(n+repeats)
	cover   float32 // share of the name that the query covers
	brief   int     // words of the longest query whose unknown words are guessed

	// For queries of several clauses, see pick.
	long   int     // words of the shortest of them
	taken  float32 // the share that a word loses by an earlier hit that has it
	clause float32 // what the best clause of a candidate counts once more
	kin    float32 // the share of an earlier hit's score for its kin

	// One round of feedback for unbroken scripts: the words of the first tops
	// hits, the best given, each with the given weight.
	tops, given int
	feedback    float32
}

var fitted = weights{
	k1: 1.9, b: 0.3,
	field:    [fields]float32{3, 4, 8, 2, 0.4, 1.5, 0.4, 1},
	unbroken: [fields]float32{3, 4, 8, 2, 1, 1.5, 1.5, 1},
	typical:  [fields]float32{4, 4, 4, 14, 40, 8, 70, 16},
	single:   0.2, synonym: 0.3, joined: 0.5, quoted: 0.25, near: 0.8, repeats: 1, cover: 0.1,
	brief: 8,
	long:  15, taken: 0.4, clause: 0.5, kin: 0.3,
	tops: 3, given: 10, feedback: 0.3,
}
