package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"capstan/internal/llm"
	"capstan/internal/tool"
)

// A Model is a model and the provider to ask it at.
type Model struct {
	Provider llm.Provider
	Family   string            // the wire format
	Name     string            // the provider's own name for it
	Endpoint string            // what stands before the name in --model: a family, or a provider of the settings
	Hosted   []json.RawMessage // tools that the provider runs itself

	close   func()
	keyHint string                   // what to set when the provider wants a key after all
	offers  func() ([]string, error) // asks the provider what models it has
}

// String returns the model as --model spells it.
func (m *Model) String() string { return m.Endpoint + "/" + m.Name }

// Close closes the connections that are kept for later requests.
func (m *Model) Close() { m.close() }

// Explain adds to an error of the provider what only the session knows: that
// no key was sent, and how to set one; and what models there are when there is
// none of this name, for which the provider is asked.
func (m *Model) Explain(err error) error {
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return err
	case e.Kind == llm.ErrAuth && m.keyHint != "":
		return fmt.Errorf("%w\n%s", err, m.keyHint)
	case e.Kind == llm.ErrNotFound && e.Status != 0:
		names, listErr := m.offers()
		if listErr != nil || len(names) == 0 || slices.Contains(names, m.Name) {
			return err // then the name is not what is wrong
		}
		near := ""
		if like := tool.Nearest(m.Name, names); len(like) > 0 {
			near = fmt.Sprintf("\ndid you mean %s/%s?", m.Endpoint, like[0])
		}
		return fmt.Errorf("%w%s%s", err, near, offer(m.Endpoint, names))
	}
	return err
}

// offer lists the models of an endpoint, as lines that follow others.
func offer(endpoint string, names []string) string {
	if len(names) == 0 {
		return fmt.Sprintf("\n%s offers no model", endpoint)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s offers:", endpoint)
	for _, n := range names[:min(len(names), listNames)] {
		fmt.Fprintf(&b, "\n  %s/%s", endpoint, n)
	}
	if n := len(names) - listNames; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}

// Model returns the model that was asked for: FAMILY/NAME or PROVIDER/NAME, a
// NAME of the only endpoint that is configured, or, when it is empty, the model
// of the settings. Nothing is sent, but when there is no model at all: then the
// error says what the endpoints offer.
func (s *Session) Model(ctx context.Context, asked string) (*Model, error) {
	from := "--model"
	if asked == "" && s.set.Model != "" {
		asked, from = s.set.Model, fmt.Sprintf("%s: model", s.set.ModelFrom)
	}
	if asked == "" {
		return nil, s.noModel(ctx)
	}
	e, name, err := s.find(asked)
	if err != nil {
		return nil, &UsageError{fmt.Errorf("%s: %w", from, err)}
	}
	c, err := s.client(e)
	if err != nil {
		return nil, s.elsewhere(err, e, asked)
	}
	m := &Model{Provider: c, Family: e.family.name, Name: name, Endpoint: e.name, close: c.Close}
	m.offers = func() ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		return c.Models(ctx)
	}
	if e.entry != nil {
		m.Hosted = e.entry.HostedTools
	}
	if key, _ := s.key(e); key == "" {
		m.keyHint = "no key was sent: set " + e.family.keyVar
		if e.entry != nil && (e.foreign || e.name != e.family.name) {
			m.keyHint = "no key was sent: put providers." + e.name + " with a keyEnv or keyFile into ~/.capstan/settings.json"
		}
	}
	return m, nil
}

// elsewhere adds to an error that the name may have been meant as one of the
// only endpoint that there is: services that resell models call them so.
func (s *Session) elsewhere(err error, e *endpoint, asked string) error {
	all, other := s.configured()
	if errors.Is(err, errNoKey) && other == nil && len(all) == 1 && all[0].name != e.name {
		return fmt.Errorf("%w; for a model of that name at %s write %s/%s", err, all[0].name, all[0].name, asked)
	}
	return err
}

// find reads a model's name.
func (s *Session) find(asked string) (*endpoint, string, error) {
	before, name, ok := strings.Cut(asked, "/")
	if ok {
		e, err := s.endpoint(before)
		if err != nil {
			return nil, "", err
		}
		if e != nil && name == "" {
			return nil, "", fmt.Errorf("%q names no model: want %s/NAME", asked, before)
		}
		if e != nil {
			return e, name, nil
		}
		if near := s.near(before); near != "" {
			return nil, "", fmt.Errorf("there is no provider %q: did you mean %s/%s?", before, near, name)
		}
	}
	all, err := s.configured()
	switch {
	case err != nil:
		return nil, "", err
	case len(all) == 1: // the name may have a slash of its own
		return all[0], asked, nil
	case len(all) == 0:
		return nil, "", fmt.Errorf("%q says not where to ask: want FAMILY/NAME, with a FAMILY of %s, or a provider that the settings name", asked, strings.Join(familyNames(), ", "))
	}
	var as []string
	for _, e := range all {
		as = append(as, e.name+"/"+asked)
	}
	return nil, "", fmt.Errorf("%q says not where to ask, and several endpoints are configured: want one of %s", asked, strings.Join(as, ", "))
}

// near is the family or provider that was probably meant.
func (s *Session) near(name string) string {
	names := familyNames()
	for _, p := range s.set.Providers {
		names = append(names, p.Name)
	}
	for _, n := range names {
		if strings.EqualFold(n, name) || len(name) > 3 && oneEdit(strings.ToLower(n), strings.ToLower(name)) {
			return n
		}
	}
	return ""
}

// oneEdit reports whether one letter that was left out, added or changed, or
// two that were swapped, make b of a.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch {
	case len(a)+1 == len(b):
		return a[i:] == b[i+1:]
	case len(a) != len(b) || i == len(a):
		return false
	}
	swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
	return swapped || a[i+1:] == b[i+1:]
}

const (
	listTimeout = 5 * time.Second // to ask the endpoints what they offer
	listNames   = 40              // that an error shows
)

// noModel says how to choose a model, and which ones there are.
func (s *Session) noModel(ctx context.Context) error {
	all, err := s.configured()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return &UsageError{errors.New("no model is configured: " + howToConfigure())}
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var b strings.Builder
	b.WriteString("no model was chosen: use --model, or \"model\" in ~/.capstan/settings.json")
	for _, e := range all {
		names, err := s.offers(ctx, e)
		if err != nil {
			fmt.Fprintf(&b, "\n%s: %v", e.name, err)
			continue
		}
		b.WriteString(offer(e.name, names))
	}
	return &UsageError{errors.New(b.String())}
}

// howToConfigure says what makes a model available.
func howToConfigure() string {
	var keys []string
	for _, f := range families() {
		if !f.second {
			keys = append(keys, f.keyVar)
		}
	}
	return fmt.Sprintf("set %s and name a model with --model FAMILY/NAME (families: %s); for a server of your own set OPENAI_BASE_URL, to http://127.0.0.1:11434/v1 say", strings.Join(keys, " or "), strings.Join(familyNames(), ", "))
}

// offers asks an endpoint for its models, once: what is wrong with it is said
// at once.
func (s *Session) offers(ctx context.Context, e *endpoint) ([]string, error) {
	c, err := s.client(e)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Models(ctx)
}
