package agent

import (
	"fmt"
	"strconv"
	"strings"
)

// memory renders the final block of the prompt. Each file stands in an element
// that names it. No file holds the element's name, so that none can close it or
// pretend to be another one.
func (p *promptPage) memory(files []MemoryFile) string {
	if len(files) == 0 {
		return ""
	}
	tag := memoryTag(files)
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(p.file("memory"), "{{tag}}", tag))
	for _, f := range files {
		fmt.Fprintf(&b, "\n<%s path=%s", tag, strconv.Quote(f.Path))
		if f.ImportedBy != "" {
			fmt.Fprintf(&b, " imported-by=%s", strconv.Quote(f.ImportedBy))
		}
		fmt.Fprintf(&b, ">\n%s\n</%s>", f.Text, tag)
	}
	return b.String()
}

// memoryTag returns the first of memory-file, memory-file-2, memory-file-3, …
// that occurs in no text and no path, in whatever case.
func memoryTag(files []MemoryFile) string {
	const tag = "memory-file"
	taken := map[string]bool{}
	for _, f := range files {
		for _, s := range []string{f.Text, f.Path, f.ImportedBy} {
			for rest := strings.ToLower(s); ; {
				_, after, ok := strings.Cut(rest, tag)
				if !ok {
					break
				}
				number := ""
				if n, ok := strings.CutPrefix(after, "-"); ok {
					number = n[:len(n)-len(strings.TrimLeft(n, "0123456789"))]
				}
				taken[number] = true
				rest = after
			}
		}
	}
	if len(taken) == 0 {
		return tag
	}
	for i := 2; ; i++ {
		if n := strconv.Itoa(i); !taken[n] {
			return tag + "-" + n
		}
	}
}
