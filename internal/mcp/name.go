package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what every API takes as the name of a tool, maxServer the part of
// it that a server's name may use.
const (
	maxName   = 64
	maxServer = 28
)

// serverPart is a server's name as it stands in the names of its tools. It has
// no `__`, so that mcp__SERVER__ in a rule means one server and never another.
// A name that must be changed ends with a hash of the original, so that two
// servers stay two; the same name always gives the same part.
func serverPart(name string) string {
	s := fit(name)
	if s == name && len(s) <= maxServer && !strings.Contains(s, "__") && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") {
		return s
	}
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	s = strings.Trim(s, "_")
	s = strings.Trim(s[:min(len(s), maxServer-9)], "_")
	if s == "" {
		return "server_" + hash(name)
	}
	return s + "_" + hash(name)
}

// ToolName is the name under which a server's tool is registered:
// mcp__server__tool, as far as every API takes it. What is too long or has
// other characters is cut and ends with a hash of both names, so a name depends
// on nothing but them (BUG-TN-01, BUG-TN-03).
func ToolName(server, tool string) string {
	prefix := "mcp__" + serverPart(server) + "__"
	s := fit(tool)
	if s == tool && s != "" && len(prefix)+len(s) <= maxName {
		return prefix + s
	}
	s = s[:min(len(s), maxName-len(prefix)-9)]
	return prefix + s + "_" + hash(server+"\x00"+tool)
}

// fit replaces what is no letter, digit, underscore or hyphen of ASCII.
func fit(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}
