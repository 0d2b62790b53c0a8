package config

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// The keys that exist. A path in sections is kept as it is, for others to read.
var (
	topKeys        = []string{"tools", "permissions", "sandbox", "mcpServers", "hooks", "disableAllHooks", "model", "providers", "web", "acp", "telemetry", managedOnlyKey}
	sections       = []string{"mcpServers", "hooks", "acp"}
	toolKeys       = []string{"mode", "codeModeOnly", "eager", "visible"}
	permissionKeys = []string{"allow", "ask", "deny", noYoloKey}
	ruleLists      = []string{"allow", "ask", "deny"}
	sandboxKeys    = []string{"require", "shell", "network", "writable"}
	webKeys        = []string{"allowPrivate"}
	telemetryKeys  = []string{"otlp"}
	modes          = []string{"direct", "code", "both"}
)

// Two keys that only take something away, named as Claude Code has them.
const (
	managedOnlyKey = "allowManagedPermissionRulesOnly"
	noYoloKey      = "disableBypassPermissionsMode"
)

// elsewhere says what to do instead of a key that other agents have.
var elsewhere = map[string]string{
	"approvalMode":                      "use --approval-mode",
	"tools.approvalMode":                "use --approval-mode",
	"permissions.defaultMode":           "use --approval-mode",
	"permissions.additionalDirectories": "use --add-dir",
	"tools.allowed":                     "use permissions.allow",
	"tools.exclude":                     "use permissions.deny",
	"tools.core":                        "use permissions.deny for what may not run",
}

// settings reads a layer that counts in full.
func (l *loader) settings(d *document, root *hujson.Value) {
	d.members(root, "the settings", func(name string, at int, v *hujson.Value) {
		switch {
		case name == "tools":
			l.tools(d, v)
		case name == "permissions":
			l.permissions(d, v, ruleLists)
		case name == "sandbox":
			l.sandbox(d, v)
		case name == "web":
			l.web(d, v)
		case name == "telemetry":
			l.telemetry(d, v)
		case name == "model":
			l.model(d, v)
		case name == "providers":
			l.providers(d, v)
		case name == "disableAllHooks":
			if b, ok := d.boolean(v, name); ok {
				if l.noHooks == nil {
					l.noHooks = map[string]bool{}
				}
				l.noHooks[d.layer] = b
			}
		case slices.Contains(sections, name):
			l.section(d, name, v)
		case name == managedOnlyKey:
			if b, ok := d.boolean(v, name); ok && d.layer != Managed {
				d.warn(at, "%s counts in the managed settings only", name)
			} else if ok {
				l.out.AllowManagedOnly = b
			}
		case name == "$schema": // for editors
		default:
			d.unknown(at, "", name, topKeys)
		}
	})
}

// section keeps what others read. Its outer form is that of other agents' settings,
// and is checked, so that what it says is not lost without a word.
func (l *loader) section(d *document, name string, v *hujson.Value) {
	d.members(v, name, func(key string, _ int, v *hujson.Value) {
		switch {
		case name == "hooks" && v.Value.Kind() != '[':
			d.expect(v, name+"."+key, "a list")
		case name == "mcpServers" && v.Value.Kind() != '{' && v.Value.Kind() != 'n': // null is none
			d.expect(v, name+"."+key, "an object")
		}
	})
	l.out.Sections = append(l.out.Sections, d.section(name, v))
}

func (l *loader) tools(d *document, v *hujson.Value) {
	d.members(v, "tools", func(name string, at int, v *hujson.Value) {
		path := "tools." + name
		switch name {
		case "mode":
			const want = `"direct", "code" or "both"`
			s, ok := d.text(v, path, want)
			if ok && !slices.Contains(modes, s) {
				d.expect(v, path, want)
			} else if ok {
				l.mode = &setting[string]{s, d.origin(v.StartOffset)}
			}
		case "codeModeOnly":
			if b, ok := d.boolean(v, path); ok {
				l.codeModeOnly = &setting[bool]{b, d.origin(v.StartOffset)}
			}
		case "eager":
			l.out.Eager = d.names(v, path)
		case "visible":
			l.out.Visible = d.names(v, path)
		default:
			d.unknown(at, "tools", name, toolKeys)
		}
	})
}

// names reads a list that replaces those of farther layers; an empty one is
// not nil, for it is set.
func (d *document) names(v *hujson.Value, path string) []string {
	out := []string{}
	d.texts(v, path, func(s string, _ int) { out = append(out, s) })
	return out
}

// permissions reads those lists of rules that count.
func (l *loader) permissions(d *document, v *hujson.Value, lists []string) {
	d.members(v, "permissions", func(name string, at int, v *hujson.Value) {
		switch {
		case slices.Contains(lists, name):
			d.texts(v, "permissions."+name, func(s string, at int) {
				switch d.rules++; {
				case d.rules <= maxRules:
					l.out.Rules = append(l.out.Rules, Rule{name, s, d.origin(at)})
				case d.rules == maxRules+1:
					d.fault(at, "more than %d rules in one file: say it with fewer, wider ones (Tool, Tool(directory), a * in a name)", maxRules)
				}
			})
		case name == noYoloKey:
			const want = `"disable"`
			if s, ok := d.text(v, "permissions."+name, want); ok && s != "disable" {
				d.expect(v, "permissions."+name, want)
			} else if ok && l.out.NoYolo == (Origin{}) {
				l.out.NoYolo = d.origin(v.StartOffset)
			}
		case !slices.Contains(permissionKeys, name):
			d.unknown(at, "permissions", name, permissionKeys)
		}
	})
}

func (l *loader) sandbox(d *document, v *hujson.Value) {
	d.members(v, "sandbox", func(name string, at int, v *hujson.Value) {
		path := "sandbox." + name
		switch name {
		case "require":
			if b, ok := d.boolean(v, path); ok && !b && ofFolder(d.layer) && l.out.SandboxRequire {
				d.warn(at, "%s is not used: your own settings are stricter", path)
			} else if ok {
				l.out.SandboxRequire = b
			}
		case "shell", "network": // a folder's own settings can take something away, and give nothing
			b, ok := d.boolean(v, path)
			field := map[string]*bool{"shell": &l.out.SandboxShell, "network": &l.out.SandboxNoNetwork}[name]
			strict := b == (name == "shell")
			if ok && !strict && ofFolder(d.layer) && *field {
				d.warn(at, "%s is not used: your own settings are stricter", path)
			} else if ok {
				*field = strict
			}
		case "writable":
			d.texts(v, path, func(s string, at int) {
				if ofFolder(d.layer) {
					d.warn(at, "%s counts in your own settings only", path)
				} else {
					l.out.SandboxWritable = append(l.out.SandboxWritable, s)
				}
			})
		default:
			d.unknown(at, "sandbox", name, sandboxKeys)
		}
	})
}

// telemetry reads whether spans are sent. A folder's own settings cannot make a
// run tell others of itself.
func (l *loader) telemetry(d *document, v *hujson.Value) {
	d.members(v, "telemetry", func(name string, at int, v *hujson.Value) {
		if name != "otlp" {
			d.unknown(at, "telemetry", name, telemetryKeys)
		} else if b, ok := d.boolean(v, "telemetry.otlp"); ok && ofFolder(d.layer) && b {
			d.warn(at, "telemetry.otlp is switched on in your own settings only")
		} else if ok {
			l.out.TelemetryOTLP = b
		}
	})
}

// web reads what counts for web_fetch. A folder's own settings cannot open the
// user's private network, trusted or not.
func (l *loader) web(d *document, v *hujson.Value) {
	d.members(v, "web", func(name string, at int, v *hujson.Value) {
		if name != "allowPrivate" {
			d.unknown(at, "web", name, webKeys)
		} else if b, ok := d.boolean(v, "web.allowPrivate"); ok && ofFolder(d.layer) {
			d.warn(at, "web.allowPrivate counts in your own settings only")
		} else if ok {
			l.out.WebAllowPrivate = b
		}
	})
}

// untrusted reads what counts of a folder that nobody trusts: what it forbids
// and what it wants to be asked about. One warning names what does not count.
func (l *loader) untrusted(d *document, root *hujson.Value) {
	var ignored []string
	d.members(root, "the settings", func(name string, at int, v *hujson.Value) {
		switch {
		case name == "$schema":
		case name == "permissions":
			l.permissions(d, v, []string{"ask", "deny"})
			if o, ok := v.Value.(*hujson.Object); ok && slices.ContainsFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == "allow" }) {
				ignored = append(ignored, "permissions.allow")
			}
		case slices.Contains(topKeys, name):
			ignored = append(ignored, name)
		default:
			d.unknown(at, "", name, topKeys)
		}
	})
	if len(ignored) > 0 {
		slices.Sort(ignored)
		d.warn(root.StartOffset, "not used, because this folder is not trusted: %s (--trust uses them for one run)", strings.Join(ignored, ", "))
	}
}

// unknown reports a key that does not exist. It is a warning, unless it seems
// to be the misspelt name of what forbids something.
func (d *document) unknown(at int, parent, name string, known []string) {
	path := name
	if parent != "" {
		path = parent + "." + name
	}
	if hint, ok := elsewhere[path]; ok {
		d.warn(at, "%s is not a setting: %s", path, hint)
		return
	}
	near := nearest(name, known)
	switch {
	case near == "":
		d.warn(at, "unknown setting %s: expected one of %s", show(path), strings.Join(known, ", "))
	case near == "permissions" || near == "deny" || near == "ask":
		d.fault(at, "unknown setting %s: did you mean %s? It would forbid nothing", show(path), near)
	default:
		d.warn(at, "unknown setting %s: did you mean %s?", show(path), near)
	}
}
