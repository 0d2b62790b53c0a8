package mcp

import "capstan/internal/tool"

// maxName is what every API takes as the name of a tool.
const maxName = 64

// ToolName is the name under which a server's tool is registered:
// mcp__server__tool, as far as every API takes it. What is too long or has
// other characters is cut and ends with a hash of both names, so a name depends
// on nothing but them (BUG-TN-01, BUG-TN-03).
func ToolName(server, name string) string {
	prefix := tool.ServerPrefix(server)
	s := tool.Fit(name)
	if s == name && s != "" && len(prefix)+len(s) <= maxName {
		return prefix + s
	}
	s = s[:min(len(s), maxName-len(prefix)-9)]
	return prefix + s + "_" + tool.NameHash(server+"\x00"+name)
}
