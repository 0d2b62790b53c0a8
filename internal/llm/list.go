package llm

import (
	"encoding/json"
	"fmt"
)

// MaxPieces bounds a list of pieces in one event of a stream. It is far above
// what any server sends at a time.
const MaxPieces = 10_000

// List reads a JSON array of at most so many elements into out, a pointer to a
// slice. Without a bound two bytes on the wire become a struct of hundreds in
// memory, and an event of 16 MiB takes gigabytes.
func List(raw []byte, most int, out any) error {
	if n := elements(raw, most); n > most {
		return fmt.Errorf("a list has more than %d elements", most)
	}
	return json.Unmarshal(raw, out)
}

// elements counts the elements of an array that is known to be well formed, no
// further than one more than most.
func elements(raw []byte, most int) int {
	depth, commas := 0, 0
	for i := 0; i < len(raw) && commas <= most; i++ {
		switch raw[i] {
		case '"':
			for i++; raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 1 {
				commas++
			}
		}
	}
	return commas + 1
}
