package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ErrThere says that there is such a server already, ErrNotThere that there is
// none.
var (
	ErrThere    = errors.New("there is a server of that name already")
	ErrNotThere = errors.New("there is no server of that name")
)

// PutServer writes one entry of mcpServers into a file and leaves the rest as it
// is, comments and layout included. The file and its directory are made when they
// are missing, with perm for the file. An entry that is there is replaced when
// replace is set, and else is ErrThere.
func PutServer(path, name string, value json.RawMessage, replace bool, perm fs.FileMode) error {
	return edit(path, perm, func(root *hujson.Object) error {
		servers, err := serversIn(root, true)
		if err != nil {
			return err
		}
		if i := indexOf(servers, name); i >= 0 && !replace {
			return ErrThere
		} else if i >= 0 {
			v, err := laidOut(value, 2)
			if err != nil {
				return err
			}
			servers.Members[i].Value.Value = v
			return nil
		}
		return appendMember(servers, name, value, 1)
	})
}

// DropServer takes one entry of mcpServers out of a file. Without such an entry,
// or such a file, it is ErrNotThere.
func DropServer(path, name string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ErrNotThere
	}
	return edit(path, 0o600, func(root *hujson.Object) error {
		servers, err := serversIn(root, false)
		if err != nil {
			return err
		}
		i := -1
		if servers != nil {
			i = indexOf(servers, name)
		}
		if i < 0 {
			return ErrNotThere
		}
		dropMember(servers, i)
		return nil
	})
}

// dropMember takes a member out of an object, with the comments right above it and
// at the end of its line. Those of the members beside it stay where they are.
func dropMember(o *hujson.Object, i int) {
	m := &o.Members[i]
	last := i == len(o.Members)-1
	line, above := lineEnd(m.Name.BeforeExtra) // the first is of the line before
	if n := bytes.LastIndex(above, []byte("\n\n")); n >= 0 && len(bytes.TrimSpace(above[:n])) > 0 {
		line = m.Name.BeforeExtra[:len(line)+n] // a text that a blank line sets off
	}
	after := &o.AfterExtra
	if !last {
		after = &o.Members[i+1].Name.BeforeExtra
	}
	_, below := lineEnd(*after)
	switch {
	case above == nil && last, above == nil && below != nil: // others are on its line
	case above == nil || !last && below == nil: // the next one comes to stand there
		*after = slices.Concat(m.Name.BeforeExtra, bytes.TrimLeft(*after, " \t"))
	case below != nil:
		*after = slices.Concat(line, below)
	case len(bytes.TrimSpace(line)) > 0:
		*after = slices.Concat(line, []byte("\n"), *after)
	}
	if last && i > 0 { // with a comma at the end, or without, as before
		p := &o.Members[i-1].Value
		if m.Value.AfterExtra == nil {
			*after, p.AfterExtra = slices.Concat(p.AfterExtra, *after), nil
		} else if p.AfterExtra == nil {
			p.AfterExtra = hujson.Extra{}
		}
	}
	o.Members = slices.Delete(o.Members, i, i+1)
}

// lineEnd takes off what ends the line on which a text between two members begins.
// below begins with the line's end; it is nil when the text ends on that line.
func lineEnd(x hujson.Extra) (line, below hujson.Extra) {
	for at := 0; at < len(x); at++ {
		switch {
		case x[at] == '\n':
			return x[:at], x[at:]
		case bytes.HasPrefix(x[at:], []byte("//")):
			if n := bytes.IndexByte(x[at:], '\n'); n >= 0 {
				at += n - 1
			}
		case bytes.HasPrefix(x[at:], []byte("/*")):
			if n := bytes.Index(x[at+2:], []byte("*/")); n >= 0 {
				at += n + 3
			}
		}
	}
	return x, nil
}

func indexOf(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool { return nameOf(&m) == name })
}

// serversIn finds the object mcpServers, or makes it.
func serversIn(root *hujson.Object, create bool) (*hujson.Object, error) {
	i := indexOf(root, mcpServers)
	if i < 0 {
		if !create {
			return nil, nil
		}
		if err := appendMember(root, mcpServers, json.RawMessage("{}"), 0); err != nil {
			return nil, err
		}
		i = len(root.Members) - 1
	}
	o, ok := root.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("mcpServers: expected an object, found %s", kindOf(&root.Members[i].Value))
	}
	return o, nil
}

// indentation of one level, in files that are written here.
const indentation = "  "

// laidOut is a value over several lines, for a place that many levels deep.
func laidOut(value json.RawMessage, depth int) (hujson.ValueTrimmed, error) {
	var b bytes.Buffer
	if err := json.Indent(&b, value, strings.Repeat(indentation, depth), indentation); err != nil {
		return nil, err
	}
	v, err := hujson.Parse(b.Bytes())
	return v.Value, err
}

// appendMember adds a member to an object that stands depth levels deep. What
// stands after the last one, a comment on its line say, stays with that.
func appendMember(o *hujson.Object, name string, value json.RawMessage, depth int) error {
	v, err := laidOut(value, depth+1)
	if err != nil {
		return err
	}
	m := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: v}}
	line := hujson.Extra("\n" + strings.Repeat(indentation, depth+1))
	kept := bytes.TrimRight(o.AfterExtra, " \t\r\n")
	m.Name.BeforeExtra = append(slices.Clone(kept), line...)
	o.AfterExtra = hujson.Extra("\n" + strings.Repeat(indentation, depth))
	if n := len(o.Members); n > 0 && o.Members[n-1].Value.AfterExtra != nil {
		m.Value.AfterExtra = hujson.Extra{} // a comma at the end, as before
	}
	o.Members = append(o.Members, m)
	return nil
}

// edit changes a file as a whole: whoever reads it finds the old one or the new
// one. A file that cannot be understood is left alone.
func edit(path string, perm fs.FileMode, change func(*hujson.Object) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return clean(err)
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer unlock()
	src, info, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return clean(err)
	default:
		perm = info.Mode().Perm()
	}
	d := &document{file: path, src: src}
	root := d.parse()
	if err := errors.Join(d.faults...); err != nil {
		return err
	}
	if root == nil {
		root = &hujson.Value{Value: &hujson.Object{}, AfterExtra: hujson.Extra("\n")}
	}
	if err := change(root.Value.(*hujson.Object)); err != nil {
		return err
	}
	out := root.Pack()
	if _, err := hujson.Parse(out); err != nil {
		return fmt.Errorf("changing %s: %w", spelled(path), err)
	}
	return replaceFile(path, out, perm)
}

// replaceFile writes a file beside the old one and puts it in its place.
func replaceFile(path string, text []byte, perm fs.FileMode) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // keep the link of those who keep their settings elsewhere
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".capstan-*")
	if err != nil {
		return clean(err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Chmod(perm), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
