package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// AddRules puts rules at the end of permissions.LIST of a file, which is allow,
// ask or deny, and leaves the rest as it is, comments and layout included. Rules
// that stand there already are not added again. The file and its directory are
// made when they are missing, with perm for the file.
func AddRules(path, list string, rules []string, perm fs.FileMode) error {
	if !slices.Contains([]string{"allow", "ask", "deny"}, list) {
		return fmt.Errorf("adding rules to %s: there is no permissions.%s: want allow, ask or deny", spelled(path), list)
	}
	return edit(path, perm, func(root *hujson.Object) error {
		permissions, err := member[*hujson.Object](root, "permissions", "{}", "an object", 0)
		if err != nil {
			return err
		}
		there, err := member[*hujson.Array](permissions, list, "[]", "a list", 1)
		if err != nil {
			return fmt.Errorf("permissions.%w", err)
		}
		for _, rule := range rules {
			if !slices.ContainsFunc(there.Elements, func(v hujson.Value) bool { return stringOf(&v) == rule }) {
				if err := appendElement(there, rule, 3); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// member finds a member of an object that stands depth levels deep, or makes it.
func member[T hujson.ValueTrimmed](o *hujson.Object, name, empty, want string, depth int) (t T, err error) {
	i := indexOf(o, name)
	if i < 0 {
		if err := appendMember(o, name, json.RawMessage(empty), depth); err != nil {
			return t, err
		}
		i = len(o.Members) - 1
	}
	t, ok := o.Members[i].Value.Value.(T)
	if !ok {
		return t, fmt.Errorf("%s: expected %s, found %s", name, want, kindOf(&o.Members[i].Value))
	}
	return t, nil
}

// stringOf is the string that a value is, or "".
func stringOf(v *hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok && l.Kind() == '"' {
		return l.String()
	}
	return ""
}

// appendElement adds a string to a list that stands depth levels deep, on a line
// of its own unless the list is on one line.
func appendElement(a *hujson.Array, text string, depth int) error {
	v, err := laidOut(quoted(text), depth)
	if err != nil {
		return err
	}
	e := hujson.Value{Value: v}
	n := len(a.Elements)
	if n > 0 && !strings.Contains(string(a.Elements[n-1].BeforeExtra)+string(a.AfterExtra), "\n") {
		e.BeforeExtra = hujson.Extra(" ")
	} else {
		kept := strings.TrimRight(string(a.AfterExtra), " \t\r\n")
		e.BeforeExtra = hujson.Extra(kept + "\n" + strings.Repeat(indentation, depth))
		a.AfterExtra = hujson.Extra("\n" + strings.Repeat(indentation, depth-1))
	}
	if n > 0 && a.Elements[n-1].AfterExtra != nil {
		e.AfterExtra = hujson.Extra{} // a comma at the end, as before
	}
	a.Elements = append(a.Elements, e)
	return nil
}

// quoted is a text as JSON that people read.
func quoted(text string) json.RawMessage {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string always can
	return json.RawMessage(strings.TrimSpace(b.String()))
}
