package builtin

import (
	"bytes"
	"context"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/text/encoding/htmlindex"

	"capstan/internal/msg"
)

// A document is what an address holds, on its way to text.
type document struct {
	url     *url.URL
	kind    string // of the header, lower case; empty when there was none
	charset string // of the header
	data    []byte
	cut     bool // data or text is only a beginning

	html  bool
	title string
	text  string
}

// decode makes text of the data: Markdown of HTML, at most limit bytes of it,
// and the text itself of anything else. What is no text is an error.
func (d *document) decode(ctx context.Context, limit int) error {
	if len(d.data) == 0 {
		return nil
	}
	if k := sniff(d.data); !k.text && !d.wide() {
		return refuse(k.mime, int64(len(d.data)))
	}
	d.html = d.kind == "text/html" || d.kind == "application/xhtml+xml" || d.kind == "" && looksLikeHTML(d.data)
	s := d.characters()
	if !d.html {
		d.text = s
		return nil
	}
	m := newMarkdown(d.url, limit)
	if err := m.convert(ctx, s); err != nil {
		return err
	}
	d.text, d.title, d.cut = m.text(), m.title, d.cut || m.cut
	return nil
}

// wide says whether the header names UTF-16, in which text can look like
// anything. In every other encoding text looks like text.
func (d *document) wide() bool {
	enc, err := htmlindex.Get(d.charset)
	if err != nil {
		return false
	}
	name, err := htmlindex.Name(enc)
	return err == nil && strings.HasPrefix(name, "utf-16")
}

// characters decodes the bytes as browsers do: by a byte order mark, else the
// header, else what the page says of itself, else as UTF-8 if it is that, else
// as windows-1252. Nothing fails: what means nothing becomes U+FFFD.
func (d *document) characters() string {
	data := d.data
	if d.cut {
		data = msg.WholeRunes(data)
	}
	if markOf(data) == nil {
		label := d.charset
		if label == "" && d.html {
			label = metaCharset(data)
		}
		if enc, err := htmlindex.Get(label); err == nil {
			if name, err := htmlindex.Name(enc); err == nil && name == "utf-8" {
				return strings.ToValidUTF8(string(data), "\uFFFD")
			}
			if s, err := enc.NewDecoder().Bytes(data); err == nil {
				return string(s)
			}
		}
	}
	s, _ := decode(data)
	return s
}

// metaCharset finds the encoding that a page says it has, within its first
// 1,024 bytes (HTML standard, "prescan a byte stream").
func metaCharset(data []byte) string {
	z := html.NewTokenizer(bytes.NewReader(data[:min(len(data), 1024)]))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			if string(name) != "meta" {
				continue
			}
			label, content := "", ""
			for more {
				var k, v []byte
				k, v, more = z.TagAttr()
				switch string(k) {
				case "charset":
					label = string(v)
				case "content":
					content = string(v)
				}
			}
			if label == "" {
				_, params := contentType(content)
				label = params["charset"]
			}
			label = strings.ToLower(strings.TrimSpace(label))
			if strings.HasPrefix(label, "utf-16") { // it could not be read if it were
				label = "utf-8"
			}
			if label != "" {
				return label
			}
		}
	}
}

// looksLikeHTML judges a body that came without a type.
func looksLikeHTML(data []byte) bool {
	head := strings.ToLower(strings.TrimSpace(string(data[:min(len(data), 512)])))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if strings.HasPrefix(head, start) {
			return true
		}
	}
	return false
}
