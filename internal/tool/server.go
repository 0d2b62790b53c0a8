package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxServerPart is how many bytes of a tool's name its server's name may use.
const maxServerPart = 28

// ServerPrefix begins the names under which the tools of an MCP server are
// registered: mcp__SERVER__. SERVER is the server's name where that fits every
// API, holds no `__` and neither begins nor ends with `_`, so that the prefix in
// a rule means one server and never another. Any other name is changed and ends
// with a hash of the original, so that two servers stay two; the same name always
// gives the same prefix.
func ServerPrefix(server string) string { return serverPrefix + serverPart(server) + "__" }

func serverPart(name string) string {
	s := Fit(name)
	if s == name && len(s) <= maxServerPart && !strings.Contains(s, "__") && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") {
		return s
	}
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	s = strings.Trim(s, "_")
	s = strings.Trim(s[:min(len(s), maxServerPart-9)], "_")
	if s == "" {
		return "server_" + NameHash(name)
	}
	return s + "_" + NameHash(name)
}

// Fit replaces what is no letter, digit, underscore or hyphen of ASCII by an
// underscore: other characters are not in the names that every API takes.
func Fit(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// NameHash is the short hash that ends a name which had to be changed.
func NameHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
