// Package config reads the settings files and makes one struct of them. It
// knows the layers, their order, and what a folder that nobody trusts may set.
//
// It reads no environment, takes every path from its options, and gives rules
// and sections on as they were written, with the place where they stand: their
// meaning belongs to others. Only package app imports it.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// The layers, the farthest first. For single values the nearest layer that
// sets one wins; lists of permissions are added up.
const (
	User    = "user"       // ~/.capstan/settings.json
	Project = "project"    // .capstan/settings.json of the workspace
	Local   = "local"      // .capstan/settings.local.json of the workspace: one user's own, for it is not shared
	Named   = "--settings" // a file named on the command line
	// Servers are files with servers alone: .mcp.json of the workspace, which
	// is farther than its settings, and those of --mcp-config, the nearest of all.
	Servers = "mcpServers"
	// Managed is the file of whoever runs the machine. It is the nearest of all:
	// what it says nobody changes.
	Managed = "managed"
)

// ServersFile is the path of the project's file of MCP servers below its root.
const ServersFile = ".mcp.json"

// File is the path of a settings file below the home or project directory.
var File = filepath.Join(".capstan", "settings.json")

// LocalFile is the path of the settings that one user has for a project, below
// its root.
var LocalFile = filepath.Join(".capstan", "settings.local.json")

// ManagedFile is the settings file of whoever runs the machine, or "" where there
// is no place for one. No variable and no flag names another.
func ManagedFile() string {
	switch runtime.GOOS {
	case "windows":
		// A fixed place: a variable such as ProgramData is the user's to set.
		return `C:\ProgramData\Capstan\managed-settings.json`
	case "darwin":
		return "/Library/Application Support/Capstan/managed-settings.json"
	}
	return "/etc/capstan/managed-settings.json"
}

// Options say where the settings are.
type Options struct {
	Home    string   // the user's home directory; empty when there is none
	Project string   // the workspace's root, absolute; empty for none
	Managed string   // the file of whoever runs the machine; empty for none
	Files   []string // of --settings, the nearest last
	Servers []string // of --mcp-config, the nearest last
	// Trusted says that the folder is trusted. If it is not, only the deny
	// and ask rules of its settings count (BUG-TR-03).
	Trusted bool
	Mode    string // of --mode; it wins over every file
}

// Settings are all layers together.
type Settings struct {
	// Mode is how tools are presented: direct, code or both; empty when
	// nothing sets it (S0-002, S0-035). Nothing else needs to look at
	// tools.mode and tools.codeModeOnly.
	Mode string
	// Eager and Visible are tools.eager and tools.visible; nil when not set.
	Eager, Visible []string
	Rules          []Rule // of all layers, the farthest first
	// AllowManagedOnly is allowManagedPermissionRulesOnly of the managed settings:
	// allow rules of other layers do not count, and are not among Rules.
	AllowManagedOnly bool
	// NoYolo says where permissions.disableBypassPermissionsMode is "disable": the
	// approval mode yolo is not to be had. Any layer can say so.
	NoYolo Origin
	// TelemetryOTLP is telemetry.otlp: spans go to the collector that the standard
	// variables of OpenTelemetry name. A folder's own settings cannot switch it on.
	TelemetryOTLP bool
	// SandboxShell is sandbox.shell: shell commands run in a sandbox of the system's.
	// SandboxNoNetwork says that sandbox.network is false, and SandboxWritable is
	// sandbox.writable: what commands may change beside the workspace.
	SandboxShell, SandboxNoNetwork bool
	SandboxWritable                []string
	// SandboxRequire is sandbox.require: a program does not run when a layer
	// of the sandbox is missing.
	SandboxRequire bool
	// WebAllowPrivate is web.allowPrivate: web_fetch may reach addresses that
	// are not on the public internet.
	WebAllowPrivate bool
	// Model is the model of a run that names none, as it was written;
	// ModelFrom is where.
	Model     string
	ModelFrom Origin
	Providers []Provider // one for each name
	// Sections are the parts that others read: mcpServers, hooks, acp; the
	// farthest layer first. Of hooks those that disableAllHooks switches off are
	// not among them.
	Sections []Section
	// HooksOff says that disableAllHooks switches off all hooks, perhaps but for the
	// managed ones, and
	// ProjectHooksOff that it does so with those of the folder: for hooks that stand
	// elsewhere, as those of agents do.
	HooksOff, ProjectHooksOff bool
	Files                     []string // that were found and read
}

// A Rule is one entry of permissions.allow, permissions.ask or
// permissions.deny.
type Rule struct {
	List string // allow, ask or deny
	Text string
	From Origin
}

// A Section is the value of a top-level key that is read elsewhere, as
// standard JSON.
type Section struct {
	Key   string
	Value json.RawMessage
	From  Origin

	doc  *document
	node *hujson.Value
}

// At returns where a member of the section's value stands, and a member of that
// one, as deep as there are members of these names. Of a list a name is an index.
func (s Section) At(names ...string) Origin {
	if s.node == nil {
		return s.From
	}
	at, v := s.node.StartOffset, s.node
	for _, name := range names {
		if list, ok := v.Value.(*hujson.Array); ok {
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(list.Elements) {
				break
			}
			v = &list.Elements[i]
			at = v.StartOffset
			continue
		}
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			break
		}
		i := slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name })
		if i < 0 {
			break
		}
		at, v = o.Members[i].Name.StartOffset, &o.Members[i].Value
	}
	return s.doc.origin(at)
}

// An Origin is a place in a settings file. Lines and columns count from 1,
// columns in characters.
type Origin struct {
	Layer        string
	File         string
	Line, Column int
}

func (o Origin) String() string {
	if o.Layer == Named || o.Layer == Servers {
		return o.position()
	}
	return o.Layer + " settings " + o.position()
}

func (o Origin) position() string { return fmt.Sprintf("%s:%d:%d", spelled(o.File), o.Line, o.Column) }

// spelled writes a path so that nothing in it acts on a terminal: a folder that
// somebody sent may be called anything.
func spelled(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return strconv.Quote(path)
	}
	return path
}

// clean spells the path of an error out.
func clean(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return &fs.PathError{Op: at.Op, Path: spelled(at.Path), Err: at.Err}
	}
	return err
}

// A Warning is something that is not as it was meant, but does no harm.
type Warning struct {
	From    Origin
	Message string
}

func (w Warning) String() string {
	if w.From == (Origin{}) {
		return w.Message // which says where
	}
	return w.From.position() + ": " + w.Message
}

// Load reads all layers. The error lists every fault of every file, each with
// file, line and column. A file of the home or project directory may be
// missing; one that is there and cannot be read is an error, for it may forbid
// something.
func Load(o Options) (Settings, []Warning, error) {
	l := &loader{opt: o}
	if o.Home != "" {
		l.file(User, filepath.Join(o.Home, File))
	}
	if o.Project != "" {
		l.projectServers(filepath.Join(o.Project, ServersFile))
	}
	if o.Project != "" && !l.read(filepath.Join(o.Project, File)) {
		l.file(Project, filepath.Join(o.Project, File))
	}
	if o.Project != "" {
		l.file(Local, filepath.Join(o.Project, LocalFile))
	}
	for _, f := range o.Files {
		l.file(Named, f)
	}
	for _, f := range o.Servers {
		l.servers(f)
	}
	if o.Managed != "" {
		l.file(Managed, o.Managed)
	}
	l.resolveMode()
	l.managedOnly()
	l.resolveHooks()
	if err := errors.Join(l.faults...); err != nil {
		return Settings{}, l.warnings, err
	}
	return l.out, l.warnings, nil
}

// A loader collects the layers.
type loader struct {
	opt      Options
	out      Settings
	seen     []fs.FileInfo
	warnings []Warning
	faults   []error

	mode         *setting[string]
	codeModeOnly *setting[bool]
	noHooks      map[string]bool // disableAllHooks, by layer
}

// A setting is a value and where it was set.
type setting[T any] struct {
	value T
	from  Origin
}

// read says whether the file was read as another layer: when the project is
// the home directory, its settings are the user's own.
func (l *loader) read(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(l.seen, func(s fs.FileInfo) bool { return os.SameFile(s, info) })
}

// file reads one layer.
func (l *loader) file(layer, path string) {
	src, info, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && layer != Named:
		return
	case err != nil:
		if layer != Named {
			layer += " settings"
		}
		l.faults = append(l.faults, fmt.Errorf("%s: %w", layer, clean(err)))
		return
	}
	if layer == Managed && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		l.faults = append(l.faults, fmt.Errorf("managed settings: others can write %s, so it is nobody's word: its owner has to run chmod go-w on it", spelled(path)))
		return
	}
	l.seen, l.out.Files = append(l.seen, info), append(l.out.Files, path)
	d := &document{layer: layer, file: path, src: src}
	if root := d.parse(); root != nil {
		if ofFolder(layer) && !l.opt.Trusted {
			l.untrusted(d, root)
		} else {
			l.settings(d, root)
		}
	}
	d.fold()
	l.warnings = append(l.warnings, d.warnings...)
	l.faults = append(l.faults, d.faults...)
}

// ofFolder says whether a layer lies in the folder that capstan runs in, and so
// may have come with it from somebody else.
func ofFolder(layer string) bool { return layer == Project || layer == Local }

// OfFolder says whether the place lies in a file of the folder itself, which
// could have come from somebody else.
func (o Origin) OfFolder() bool { return ofFolder(o.Layer) }

// managedOnly drops the allow rules that do not count.
func (l *loader) managedOnly() {
	if !l.out.AllowManagedOnly {
		return
	}
	dropped := 0
	l.out.Rules = slices.DeleteFunc(l.out.Rules, func(r Rule) bool {
		drop := r.List == "allow" && r.From.Layer != Managed
		if drop {
			dropped++
		}
		return drop
	})
	if dropped > 0 {
		l.warnings = append(l.warnings, Warning{Message: fmt.Sprintf("%d rules of permissions.allow do not count: the managed settings (%s) allow only their own", dropped, spelled(l.opt.Managed))})
	}
}

// resolveMode makes one mode of the two settings for it (ruling 1). A
// codeModeOnly that is false says only that the mode is not code (S0-225).
func (l *loader) resolveMode() {
	if m := l.mode; m != nil && m.from.Layer == Managed && l.opt.Mode != "" && l.opt.Mode != m.value {
		l.faults = append(l.faults, fmt.Errorf("the mode %q is not to be had: tools.mode is %q (%s)", l.opt.Mode, m.value, m.from))
		return
	}
	if l.opt.Mode != "" {
		l.out.Mode = l.opt.Mode
		if !slices.Contains(modes, l.opt.Mode) {
			l.faults = append(l.faults, fmt.Errorf("unknown mode %q: want direct, code or both", l.opt.Mode))
		}
		return
	}
	mode, only := l.mode, l.codeModeOnly
	switch {
	case mode == nil && only == nil:
	case mode == nil:
		if only.value {
			l.out.Mode = "code"
		}
	case only == nil || only.value == (mode.value == "code"):
		l.out.Mode = mode.value
	default:
		l.faults = append(l.faults, fmt.Errorf("tools.mode is %q (%s) but tools.codeModeOnly is %t (%s): remove one of them, or make them agree", mode.value, mode.from, only.value, only.from))
	}
}

// resolveHooks takes away the hooks that disableAllHooks switches off: those of
// the folder in the folder's own settings, all but the managed ones in the user's,
// all in the managed ones. Nobody can switch off what a layer above has put up
// against them.
func (l *loader) resolveHooks() {
	if len(l.noHooks) == 0 {
		return
	}
	all := l.noHooks[User]
	if own, ok := l.noHooks[Named]; ok { // nearer
		all = own
	}
	folder := l.noHooks[Project]
	if own, ok := l.noHooks[Local]; ok { // nearer
		folder = own
	}
	managed := l.noHooks[Managed]
	all = all || managed
	folder = folder || all
	l.out.HooksOff, l.out.ProjectHooksOff = all, folder
	l.out.Sections = slices.DeleteFunc(l.out.Sections, func(s Section) bool {
		return s.Key == "hooks" && (managed || all && s.From.Layer != Managed || folder && s.From.OfFolder())
	})
}

// maxFile bounds a settings file, in bytes.
const maxFile = 1 << 20

// readFile reads a regular file. Anything else (a named pipe in a folder that
// nobody trusts, say) could hang or never end.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", spelled(path))
	}
	if info.Size() > maxFile {
		return nil, nil, fmt.Errorf("%s is larger than %d bytes", spelled(path), maxFile)
	}
	src, err := os.ReadFile(path)
	return src, info, err
}
