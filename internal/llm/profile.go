package llm

import (
	"fmt"
	"strings"
)

// Known says which endpoints a profile is for. The Profile of a family embeds
// it, and adds how they differ.
type Known struct {
	Name  string   // for a setting
	Hosts []string // host names; one that begins with a dot stands for all below it
}

func (k Known) known() Known { return k }

// Profiles is the table of a family: of the profiles whose host matches the
// first is taken. The last one is for all hosts that nobody knows.
type Profiles[P interface{ known() Known }] []P

// For returns the profile for a base URL.
func (ps Profiles[P]) For(baseURL string) P {
	for _, p := range ps {
		if AtHost(baseURL, p.known().Hosts) {
			return p
		}
	}
	return ps[len(ps)-1]
}

// Named returns the profile of that name.
func (ps Profiles[P]) Named(name string) (P, bool) {
	for _, p := range ps {
		if p.known().Name == name {
			return p, true
		}
	}
	var none P
	return none, false
}

// Choose returns the profile that a setting names; nil, which is that of the
// address, when it names none.
func (ps Profiles[P]) Choose(name string) (*P, error) {
	if name == "" {
		return nil, nil
	}
	p, ok := ps.Named(name)
	if !ok {
		return nil, fmt.Errorf("profile %q: expected one of %s", name, strings.Join(ps.Names(), ", "))
	}
	return &p, nil
}

// Names lists the names, in the order of the table.
func (ps Profiles[P]) Names() []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.known().Name)
	}
	return out
}
