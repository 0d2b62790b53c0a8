package config

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tailscale/hujson"
)

// mcpServers is the one key that a file of servers is read for.
const mcpServers = "mcpServers"

// section is the value of a top-level key, for others to read.
func (d *document) section(key string, v *hujson.Value) Section {
	return Section{Key: key, Value: standard(v), From: d.origin(v.StartOffset), doc: d, node: v}
}

// projectServers reads the file of servers that lies in the workspace. Nothing in
// it protects anything, so one that cannot be read costs its servers and a
// warning, and that of a folder that nobody trusts is not looked into.
func (l *loader) projectServers(path string) {
	d := &document{layer: Servers, file: path}
	src, _, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case !l.opt.Trusted:
		d.warn(0, "not used, because this folder is not trusted (--trust uses it for one run)")
	case err != nil:
		d.warn(0, "its servers cannot be read: %v", clean(err))
	default:
		d.src = src
		l.serversOf(d)
	}
	d.fold()
	l.warnings = append(l.warnings, d.warnings...)
	for _, fault := range d.faults {
		l.warnings = append(l.warnings, Warning{Message: fault.Error()})
	}
}

// servers reads a file that the command line names. What is wrong with it is an
// error: whoever names it wants it.
func (l *loader) servers(path string) {
	src, _, err := readFile(path)
	if err != nil {
		l.faults = append(l.faults, fmt.Errorf("reading the MCP servers: %w", clean(err)))
		return
	}
	d := &document{layer: Servers, file: path, src: src}
	if !l.serversOf(d) && len(d.faults) == 0 {
		d.fault(0, `there is no "mcpServers" in it; such a file looks like {"mcpServers": {"NAME": {"command": "…"}}}`)
	}
	d.fold()
	l.warnings = append(l.warnings, d.warnings...)
	l.faults = append(l.faults, d.faults...)
}

// serversOf takes the servers of a file, and says whether there are any. Other
// agents keep other things in such files, so other keys are no fault.
func (l *loader) serversOf(d *document) bool {
	root := d.parse()
	if root == nil {
		return false
	}
	o := root.Value.(*hujson.Object) // parse has seen to it
	i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == mcpServers })
	if i < 0 {
		return false
	}
	l.out.Sections = append(l.out.Sections, d.section(mcpServers, &o.Members[i].Value))
	return true
}
