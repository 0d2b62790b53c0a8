package policy

import "strings"

// This file is about the files that options of curl name.

// curlFiles returns the files that the value of an option of curl names.
func curlFiles(option string, x word) []word {
	var at int
	switch option {
	case "T", "upload-file", "K", "config", "cacert", "capath", "crlfile", "key", "proxy-key", "proxy-cacert", "netrc-file", "etag-compare":
		return []word{x}
	case "E", "cert", "proxy-cert": // FILE[:PASSWORD]
		x.s, _, _ = strings.Cut(x.s, ":")
		return []word{x}
	case "b", "cookie": // NAME=VALUE or a file
		if x.s = strings.TrimPrefix(x.s, "@"); strings.Contains(x.s, "=") {
			return nil
		}
		return []word{x}
	case "pinnedpubkey":
		if strings.HasPrefix(x.s, "sha256//") {
			return nil
		}
		return []word{x}
	case "H", "header", "proxy-header", "w", "write-out":
		if !strings.HasPrefix(x.s, "@") {
			return nil
		}
		at = 0
	case "F", "form":
		return formFiles(x)
	default: // data, or @FILE, or NAME=@FILE
		at = strings.LastIndexAny(x.s, "@<")
	}
	if at < 0 {
		return nil
	}
	x.s, _, _ = strings.Cut(x.s[at+1:], ";")
	return []word{x}
}

// formFiles returns the files of a part of a form: NAME=@FILE, more of them behind
// commas, and those of headers=@FILE behind a semicolon. A name may be quoted.
func formFiles(x word) (out []word) {
	_, value, ok := strings.Cut(x.s, "=")
	if !ok {
		return nil
	}
	add := func(s string) {
		y := x
		y.s, y.tilde = s, false
		out = append(out, y)
	}
	files := strings.HasPrefix(value, "@") || strings.HasPrefix(value, "<")
	for i, part := range formParts(value) {
		part = strings.TrimSpace(part)
		if i == 0 && files {
			part = part[1:]
		}
		if files {
			add(unquoteForm(part))
		}
		if _, v, has := strings.Cut(part, "="); has && strings.ContainsAny(v[:min(1, len(v))], "@<") {
			add(unquoteForm(v[1:]))
		}
	}
	if files { // should the commas be of its name
		name, _, _ := strings.Cut(value[1:], ";")
		add(name)
	}
	return out
}

// formParts splits at commas and semicolons that are not in quotes. A quote counts
// as one where a name begins.
func formParts(s string) (out []string) {
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case quoted:
			quoted = c != '"'
		case c == '"':
			quoted = i == 0 || strings.IndexByte("@<=,; ", s[i-1]) >= 0
		case c == ',' || c == ';':
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// unquoteForm takes the quotes off a name, as curl does.
func unquoteForm(s string) string {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	s = strings.TrimSuffix(s[1:], `"`)
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(s)
}
