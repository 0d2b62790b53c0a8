package schema

// typeSet is a set of JSON types; 0 means any.
type typeSet uint8

const (
	nullType typeSet = 1 << iota
	boolType
	numberType
	stringType
	arrayType
	objectType
	integerType
)

// typeNames is in the order in which messages list types.
var typeNames = []struct {
	name string
	bit  typeSet
}{
	{"string", stringType}, {"integer", integerType}, {"number", numberType}, {"boolean", boolType},
	{"object", objectType}, {"array", arrayType}, {"null", nullType},
}

// A node is one compiled subschema.
type node struct {
	always   int // 1: the schema true, -1: false
	resource *resource
	types    typeSet
	enum     *enum
	ref      *node
	dynRef   *node  // target of a $dynamicRef when nothing outside replaces it
	dynName  string // its anchor, when that is a dynamic one

	allOf, anyOf, oneOf []*node
	not                 *node
	ifNode              *node
	thenNode, elseNode  *node

	number  *numberRules
	str     *stringRules
	array   *arrayRules
	object  *objectRules
	unevals bool // needs to know what its subschemas evaluated
}

// enum is the values of enum or const.
type enum struct {
	strings  map[string]bool // the strings among them
	others   map[string]bool // the keys of the rest
	compound bool            // some of the rest are objects or arrays
	shown    string          // for messages
	only     bool            // it is a const
}

type numberRules struct {
	min, max, exMin, exMax, multiple *bound
}

type bound struct {
	decimal
	text string
}

type stringRules struct {
	min, max int // -1: none
	pattern  *pattern
}

type arrayRules struct {
	min, max                 int
	unique                   bool
	prefix                   []*node
	items                    *node
	contains                 *node
	minContains, maxContains int
	unevaluated              *node
}

type objectRules struct {
	min, max    int
	required    []string
	properties  map[string]*node
	names       []string // of properties, in the schema's order
	patterns    []patternRule
	additional  *node
	nameRule    *node
	dependent   []dependency
	unevaluated *node
}

type patternRule struct {
	*pattern
	*node
}

type dependency struct {
	on       string
	required []string
	node     *node
}
