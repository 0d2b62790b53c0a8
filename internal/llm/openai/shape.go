package openai

// A shape follows arguments as they come, to know when they are one whole JSON
// object. Each byte is looked at once: to parse all of them again with every
// piece took minutes where a server repeats the name of the call in each.
type shape struct {
	state   shapeState
	depth   int // of braces and brackets
	quoted  bool
	escaped bool
}

type shapeState int

const (
	shapeOpen  shapeState = iota // may become an object
	shapeWhole                   // is one
	shapeOther                   // is none, whatever follows
)

// read takes the next bytes. It reports whether they closed the object, so that
// its inside has to be looked at, and nothing but space follows.
func (s *shape) read(text []byte) (closed bool) {
	for _, c := range text {
		switch {
		case s.state == shapeOther:
			return false
		case s.quoted:
			s.quoted = s.escaped || c != '"'
			s.escaped = !s.escaped && c == '\\'
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case closed || s.state == shapeWhole, s.depth == 0 && c != '{':
			s.state, closed = shapeOther, false
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			closed = s.depth == 0
		}
	}
	return closed
}
