package sched

import "capstan/internal/tool"

// Tokens returns the tokens of the programs that run now, as a thief would have
// them.
func (rt *Runtime) Tokens() []*tool.Parent {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	var out []*tool.Parent
	for t := range rt.tokens {
		out = append(out, t)
	}
	return out
}
