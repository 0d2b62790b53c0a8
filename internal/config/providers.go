package config

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// A Provider is one entry of providers: an endpoint that the user has named.
// An entry is taken as it stands in one layer. Parts of two layers are never
// put together, for then one of them could say where the other's key goes.
type Provider struct {
	Name    string
	Family  string // empty when Name is one
	BaseURL string // empty: the family's own
	// KeyEnv is the variable that holds the key, KeyFile the file. A folder's
	// own settings have neither.
	KeyEnv, KeyFile string
	Headers         []Header // by name
	Profile         string
	// Retries bounds how often a failed request is repeated; nil is not set.
	Retries *int
	// IdleTimeout is how long the endpoint may be silent; 0 is not set.
	IdleTimeout time.Duration
	// HostedTools are tools that the provider runs itself, each an object in
	// the words of its API. A folder's own settings have none.
	HostedTools []json.RawMessage
	From        Origin // of the entry
}

// A Header is sent with every request. ${NAME} in Value stands for a variable
// of the environment, but not in a folder's own settings.
type Header struct{ Name, Value string }

var providerKeys = []string{"family", "baseUrl", "keyEnv", "keyFile", "headers", "profile", "retries", "idleTimeout", "hostedTools"}

// noSecrets is the answer to what a folder's own settings may not have: whoever wrote them
// would get a key of the user sent to an address of theirs.
const noSecrets = "a folder's own settings cannot name keys or variables: put this provider into ~/.capstan/settings.json"

func (l *loader) model(d *document, v *hujson.Value) {
	if s, ok := d.text(v, "model", `a string such as "openai/NAME"`); ok {
		l.out.Model, l.out.ModelFrom = s, d.origin(v.StartOffset)
	}
}

// providers reads the entries. That of a nearer layer replaces one of the same
// name, but a folder's own never the user's.
func (l *loader) providers(d *document, v *hujson.Value) {
	d.members(v, "providers", func(name string, at int, v *hujson.Value) {
		if name == "" || strings.Contains(name, "/") {
			d.fault(at, "providers: %s is no name: it stands before the / in FAMILY/MODEL", show(name))
			return
		}
		p := Provider{Name: name, From: d.origin(v.StartOffset)}
		path := "providers." + name
		d.members(v, path, func(key string, at int, v *hujson.Value) { d.provider(&p, path, key, at, v) })
		if p.KeyEnv != "" && p.KeyFile != "" {
			d.fault(at, "%s: keyEnv and keyFile are both there: keep one", path)
		}
		i := slices.IndexFunc(l.out.Providers, func(o Provider) bool { return o.Name == name })
		switch {
		case i < 0:
			l.out.Providers = append(l.out.Providers, p)
		case ofFolder(d.layer) && !l.out.Providers[i].From.OfFolder():
			d.warn(at, "%s is not used: your own settings have a provider of that name (%s)", path, l.out.Providers[i].From)
		default:
			l.out.Providers[i] = p
		}
	})
}

func (d *document) provider(p *Provider, path, key string, at int, v *hujson.Value) {
	fields := map[string]*string{"family": &p.Family, "baseUrl": &p.BaseURL, "keyEnv": &p.KeyEnv, "keyFile": &p.KeyFile, "profile": &p.Profile}
	switch field := fields[key]; {
	case field != nil:
		s, ok := d.text(v, path+"."+key, "a string")
		if ok && ofFolder(d.layer) && (key == "keyEnv" || key == "keyFile") {
			d.fault(at, "%s.%s: %s", path, key, noSecrets)
			return
		}
		*field = s
	case key == "retries":
		n, err := strconv.Atoi(literal(v))
		if err != nil || n < 0 || n > 100 {
			d.expect(v, path+".retries", "a number from 0 to 100")
			return
		}
		p.Retries = &n
	case key == "idleTimeout":
		const want = `a duration such as "10m"`
		if s, ok := d.text(v, path+".idleTimeout", want); ok {
			if p.IdleTimeout, _ = time.ParseDuration(s); p.IdleTimeout <= 0 {
				d.expect(v, path+".idleTimeout", want)
			}
		}
	case key == "hostedTools":
		d.hosted(p, path, at, v)
	case key == "headers":
		d.members(v, path+".headers", func(name string, at int, v *hujson.Value) {
			s, ok := d.text(v, path+".headers."+name, "a string")
			if !ok {
				return
			}
			if ofFolder(d.layer) && strings.Contains(s, "${") {
				d.fault(at, "%s.headers.%s: %s", path, name, noSecrets)
				return
			}
			p.Headers = append(p.Headers, Header{name, s})
		})
		slices.SortFunc(p.Headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	default:
		d.unknown(at, path, key, providerKeys)
	}
}

// hosted reads the tools that a provider runs itself. They come from the user
// alone: no rule and no question stands between a model and them.
func (d *document) hosted(p *Provider, path string, at int, v *hujson.Value) {
	const want = `a list of objects such as [{"type": "web_search"}]`
	list, ok := v.Value.(*hujson.Array)
	if !ok {
		d.expect(v, path+".hostedTools", want)
		return
	}
	if ofFolder(d.layer) {
		d.fault(at, "%s.hostedTools: a folder's own settings cannot add tools that a provider runs, because no rule applies to them: put them into ~/.capstan/settings.json", path)
		return
	}
	for i := range list.Elements {
		e := &list.Elements[i]
		if _, ok := e.Value.(*hujson.Object); !ok {
			d.expect(e, path+".hostedTools", want)
			return
		}
		p.HostedTools = append(p.HostedTools, standard(e))
	}
}

// literal is a number, true, false or null as it was written.
func literal(v *hujson.Value) string {
	l, _ := v.Value.(hujson.Literal)
	return string(l)
}
