package mcp

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// variable is compiled when it is first needed: what init does, every start pays.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}`)
})

// expanded returns the configuration with its variables replaced. The error
// names the field and the variable that is not set.
func (c Config) expanded(getenv func(string) (string, bool)) (Config, error) {
	var fault error
	field := func(name, s string) string {
		return variable().ReplaceAllStringFunc(s, func(m string) string {
			sub := variable().FindStringSubmatch(m)
			if v, ok := getenv(sub[1]); ok && (v != "" || !strings.Contains(m, ":-")) {
				return v
			}
			if strings.Contains(m, ":-") {
				return sub[2]
			}
			if fault == nil {
				fault = fmt.Errorf("mcpServers.%s.%s in %s: the environment variable %s is not set; set it, or give a default as ${%s:-default}",
					c.Name, name, c.From, sub[1], sub[1])
			}
			return ""
		})
	}
	each := func(name string, in map[string]string) map[string]string {
		out := make(map[string]string, len(in))
		for _, k := range slices.Sorted(maps.Keys(in)) {
			out[k] = field(name+"."+k, in[k])
		}
		return out
	}
	c.Command, c.Cwd, c.URL = field("command", c.Command), field("cwd", c.Cwd), field("url", c.URL)
	c.Args = slices.Clone(c.Args)
	for i := range c.Args {
		c.Args[i] = field(fmt.Sprintf("args[%d]", i), c.Args[i])
	}
	c.Env, c.Headers = each("env", c.Env), each("headers", c.Headers)
	return c, fault
}

// inherited are the variables that every server gets, so that programs and
// their packages are found: no keys, no tokens, nothing of the agent's.
var inherited = []string{
	"HOME", "LOGNAME", "USER", "PATH", "SHELL", "TMPDIR", "TZ", "LANG", "LANGUAGE",
	"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
}

var inheritedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
	"PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// proxies are inherited too unless they hold a password.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}

// environ is the environment of a stdio server: the minimum, and what its
// configuration says.
func environ(base []string, own map[string]string) []string {
	keep := func(name, value string) bool {
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		switch up := strings.ToUpper(name); {
		case slices.Contains(proxies, up):
			return !strings.Contains(value, "@")
		case runtime.GOOS == "windows" && slices.Contains(inheritedWindows, name):
			return true
		}
		return slices.Contains(inherited, name) || strings.HasPrefix(name, "LC_")
	}
	var env []string
	for _, entry := range base {
		name, value, ok := strings.Cut(entry, "=")
		if _, set := own[name]; ok && !set && keep(name, value) {
			env = append(env, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	return env
}

// lookup finds a variable in an environment.
func lookup(env []string) func(string) (string, bool) {
	if env == nil {
		return os.LookupEnv
	}
	return func(name string) (string, bool) {
		for _, entry := range slices.Backward(env) {
			if n, v, ok := strings.Cut(entry, "="); ok && n == name {
				return v, true
			}
		}
		return "", false
	}
}

// directory is where a server runs: its cwd, relative to the workspace.
func directory(dir, cwd string) string {
	switch {
	case cwd == "":
		return dir
	case filepath.IsAbs(cwd):
		return cwd
	}
	return filepath.Join(dir, cwd)
}
