package quickjs

import "encoding/json"

// namesJSON is the JSON array of names.
func namesJSON(names []string) []byte {
	if len(names) == 0 {
		return []byte("[]")
	}
	b, err := json.Marshal(names)
	if err != nil { // strings always marshal
		panic(err)
	}
	return b
}
