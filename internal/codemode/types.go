package codemode

import (
	_ "embed"
	"strings"

	"capstan/internal/tool"
)

//go:embed globals.d.ts
var globals string

// Types returns TypeScript declarations of everything a program of this view
// can use, for editors: the globals and all bindings, shown or deferred.
func Types(v *tool.View) string {
	var b strings.Builder
	b.WriteString(globals)
	b.WriteString("\ndeclare const tools: {\n")
	for _, bind := range v.Bindings() {
		sp := bind.Entry.Spec()
		b.WriteString(signature(bind.JS, sp.Description, sp.Input, sp.Output))
		b.WriteByte('\n')
	}
	b.WriteString("};\n")
	return b.String()
}

// Signature returns the TypeScript declaration of one tool, as exec's
// description has it.
func Signature(e *tool.Entry) string {
	sp := e.Spec()
	return signature(tool.JSName(sp.Name), sp.Description, sp.Input, sp.Output)
}
