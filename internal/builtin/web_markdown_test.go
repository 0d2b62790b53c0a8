package builtin

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func toMarkdown(t testing.TB, src string) *markdown {
	t.Helper()
	base, err := url.Parse("https://example.com/docs/page.html")
	if err != nil {
		t.Fatal(err)
	}
	m := newMarkdown(base, maxBody)
	if err := m.convert(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct{ name, html, want string }{
		{"nothing", "", ""},
		{"only white space", " \n\t<p> </p><div></div>", ""},
		{"text", "a  b\n\tc", "a b c"},
		{"paragraphs", "<p>a</p><p>b<p>c", "a\n\nb\n\nc"},
		{"line breaks", "a<br>b<br><br><br>c", "a\nb\n\nc"},
		{"entities", "&lt;b&gt; &amp;amp; &nbsp;&#x41;&bogus;", "<b> &amp; \u00a0A&bogus;"},
		{"headings", "<h1>A <em>b</em></h1>c<h3>d<br>e</h3><h9>f</h9>", "# A *b*\n\nc\n\n### d e\n\nf"},
		{"an open heading", "<h1>a<h2>b</h2>c", "# a\n\n## b\n\nc"},
		{"emphasis", "x <b>a </b>b<i>c</i> <s>d</s>", "x **a** b*c* ~~d~~"},
		{"emphasis in itself", "<b>a<strong>b</strong>c</b>d", "**abc**d"},
		{"emphasis crossed", "<b>a<i>b</b>c</i>d", "**a*b***​*c*d"},
		{"emphasis over paragraphs", "<b><p>a<p>b</b>c", "**a**\n\n**b**c"},
		{"empty emphasis", "a<b> </b><i></i>b", "a b"},
		{"links", `<a href="x?a=b#c">one</a> <a href=/y>two</a> <a href="//z.test/(q)">three</a>`, "[one](https://example.com/docs/x?a=b#c) [two](https://example.com/y) [three](https://z.test/%28q%29)"},
		{"links that lead nowhere", `<a href="#top">a</a><a>b</a><a href="javascript:x()">c</a><a href="data:,x">d</a><a href="x y://">e</a><a href=" ">f</a>`, "abcdef"},
		{"an empty link", `a<a href=x> </a>b`, "a b"},
		{"a link around blocks", `<a href=x><h2>a</h2><p>b</p></a>c`, "## [a](https://example.com/docs/x)\n\nb\n\nc"},
		{"a link in a link", `<a href=x>a<a href=y>b</a>`, "[a](https://example.com/docs/x)[b](https://example.com/docs/y)"},
		{"another base", `<base><base href="https://other.test/a/"><base href="https://third.test/"><a href=b>c</a>`, "[c](https://other.test/a/b)"},
		{"images", `<img src=a.png alt="A  b"><img src=b.png><img alt=c>`, "![A b](https://example.com/docs/a.png)c"},
		{"a linked image", `<a href=x><img src=a.png alt=A></a>`, "[![A](https://example.com/docs/a.png)](https://example.com/docs/x)"},
		{"lists", "<p>x</p><ul><li>a<li>b<ol start=9><li>c</li><li>d</ol><li><p>e</p><p>f</p></ul>y", "x\n\n- a\n- b\n  9. c\n  10. d\n- e\n\n  f\n\ny"},
		{"an empty item", "<ul><li></li><li>a</ul>", "- a"},
		{"a list in a list at once", "<ul><li><ul><li>a", "- - a"},
		{"an item without a list", "<li>a<li>b", "- a\n- b"},
		{"terms", "<dl><dt>a<dd>b<dd>c<dt>d<dd>e<p>f</dl>g", "a\n: b\n: c\nd\n: e\n\n  f\n\ng"},
		{"quotes", "a<blockquote><p>b</p><p>c<ul><li>d</ul></blockquote>e", "a\n\n> b\n>\n> c\n>\n> - d\n\ne"},
		{"code", "<code>a  b</code> <code>`</code> <code> </code><kbd>x``y</kbd>", "`a b` `` ` `` ```x``y```"},
		{"a block of code", "<p>a<pre class=\"x language-go\">\nfunc <b>f</b>() {\n\n\treturn\r\n}\n</pre>b", "a\n\n```go\nfunc f() {\n\n\treturn\n}\n```\n\nb"},
		{"code in pre", "<pre><code class=lang-js>a<br>b</code></pre>", "```js\na\nb\n```"},
		{"fences in pre", "<pre>```\n````</pre>", "`````\n```\n````\n`````"},
		{"lines of a highlighter", "<pre><div>a</div><div>b</div></pre>", "```\na\nb\n```"},
		{"pre in an item", "<ul><li>a<pre>b\nc</pre></ul>", "- a\n\n  ```\n  b\n  c\n  ```"},
		{"an evil language", "<pre class='language-a`b'>x</pre>", "```\nx\n```"},
		{"a rule", "a<hr>b", "a\n\n---\n\nb"},
		{"a table", "<table><caption>T</caption><tr><th>a<th>b<tr><td>c|d<td><p>e</p><p>f<tr><td><b>g</b></table>h", "T\n\n| a | b |\n| --- | --- |\n| c\\|d | e f |\n| **g** |\n\nh"},
		{"a table with parts", "<table><thead><tr><td>a</td><td></td></tr></thead><tbody><tr><td>c</td><td>d</td></tr></tbody></table>", "| a | |\n| --- | --- |\n| c | d |"},
		{"a table that arranges", "<table><tr><td><h1>a</h1><td>b<tr><td>c</table>", "# a\n\nb\nc"},
		{"a table in a table", "<table><tr><td>x<td><table><tr><td>a<td>b</table></table>", "x\n\n| a | b |\n| --- | --- |"},
		{"a table without end", "<table><tr><td>a<td>b", "a b"},
		{"too many tables", strings.Repeat("<table></table>", maxTables) + "<table><tr><td>a<td>b</table>", "a b"},
		{"left out", "a<script>if (a<b) {}</script><style>p{}</style><!-- c --><template><p>d</template><svg><title>e</title><svg/></svg><select><option>f</select>b", "ab"},
		{"an open drawing", "<svg><path>a<p>b", "b"},
		{"left out in itself", "<object><object>a</object>b</object>c", "c"},
		{"end tags of nothing", "</p></b></a></ul></table></code></pre></script>a</h1></blockquote>b", "a\n\nb"},
		{"not HTML", "a < b && c > d <", "a < b && c > d <"},
		{"a cut tag", "a<a href=\"x", "a"},
		{"no script", "a<noscript><p>b <b>c</b></p><img src=x><style>d</style></noscript>e", "a\n\nb **c**\n\ne"},
		{"no script in a table", "<table><tr><td>a<td><noscript>b</noscript></table>", "| a | b |\n| --- | --- |"},
		{"an open object", "a<object><param name=x>b<p>c", "ab\n\nc"},
		{"an open select", "<p>a<select><option>b<p>c", "ab\n\nc"},
		{"an open canvas before a closed one", "a<canvas>b<p>c</p><canvas>d</canvas>e</body>", "ab\n\nc\n\ne"},
		{"open elements in a closed one", "a<object><canvas>b<video>c</object>d", "ad"},
		{"an open template, video and audio", "a<template>b<video>c<audio>d", "abcd"},
		{"a canvas that its block ends", "<div><canvas>a</div>b", "a\n\nb"},
		{"hidden", "a<div hidden>b<div>c</div>d</div><span hidden=''>e</span><img hidden src=x alt=f>g", "ag"},
		{"hidden until it is found", "a<span hidden=until-found>b</span>", "ab"},
		{"hidden from readers", "a<span aria-hidden=true>b</span><span aria-hidden=false>c</span><i ARIA-HIDDEN=' True '>d</i>", "ac"},
		{"a formula as a picture", "<img aria-hidden=true alt='E = mc^2' src=x.svg>", "![E = mc^2](https://example.com/docs/x.svg)"},
		{"not displayed", "a<span style='color:red;DISPLAY : None !important'>b</span><span style='display:none;display:block'>c</span><span style='x-display:none'>d</span>", "acd"},
		{"a page that scripts show", "<html hidden><body style=display:none aria-hidden=true>a</body></html>", "a"},
		{"hidden without end tags", "<p hidden>a<p>b<ul><li hidden>c<i>d<li>e<li hidden>f</ul>g<p hidden>h", "b\n\n- e\n\ng"},
		{"hidden terms", "<dl><dt hidden>a<dd hidden>b<dt>c<dd>d</dl>", "c\n: d"},
		{"hidden rows and cells", "<table><tr><td>a<td hidden>b<td>c<tr hidden><td>d<td>e<tr><td>f<td>g</table>", "| a | c |\n| --- | --- |\n| f | g |"},
		{"a hidden element that does not end", "<div><div hidden>a</div><p>b<div hidden>c", "b\n\nc"},
		{"a hidden list in an item", "<ul><li>a<ul hidden><li>b<li>c</ul><li>d</ul>", "- a\n- d"},
		{"hidden code", "<pre>a<span hidden>b</span>c</pre>", "```\nac\n```"},
		{"hidden in a drawing", "<svg><g hidden/><g/></svg>a<p hidden>b</p>", "a"},
		{"controls, directions and tags", "a\x00\x1b[31mb\u202ec\u2066d\u200fe\U000e0041f&#x1b;g&#x202a;h\x7f", "a[31mbcdefgh"},
		{"joiners stay", "\U0001F469\u200d\U0001F4BB \u0645\u06cc\u200c\u062e", "\U0001F469\u200d\U0001F4BB \u0645\u06cc\u200c\u062e"},
		{"directions in code and pictures", "<code>a\u202eb</code><pre>a\u202eb</pre><img src=x alt='a\u202eb'>", "`ab`\n\n```\nab\n```\n\n![ab](https://example.com/docs/x)"},
		{"directions in an address", "<a href='/?q=\u202eb'>a</a>", "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := strings.ReplaceAll(tc.want, "\u200b", "")
			if diff := cmp.Diff(want, toMarkdown(t, tc.html).text()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTitle(t *testing.T) {
	for src, want := range map[string]string{
		"<title> A\n &amp; b </title><title>c</title>": "A & b", "<title></title>x": "", "<title>": "", "<svg><title>a</title></svg>": "", "<title>a\u202eb\U000e0041\x01</title>": "ab",
		"<title>" + strings.Repeat("é", 200): strings.Repeat("é", maxTitle/2),
	} {
		if got := toMarkdown(t, src).title; got != want {
			t.Errorf("%.50q: %q, want %q", src, got, want)
		}
	}
}

// Pages that break converters which build a tree or look back: each of them is
// read in one pass. The deadline is generous, and a quadratic step misses it by
// far.
func TestHostileHTML(t *testing.T) {
	n := 200_000
	if testing.Short() || raceEnabled {
		n = 20_000
	}
	r := strings.Repeat
	for name, src := range map[string]string{
		"divs": r("<div>", n), "lists": r("<ul><li>a", n/4), "list ends": r("<ul>", n/2) + r("</ol>", n/2), "quotes": r("<blockquote>a", n/4), "quoted lines": r("<blockquote>", 100) + r("a<br>", n),
		"bold": r("<b>", n), "crossed": r("<b><i>a</b>", n/4), "links": r("<a href=x>a", n/4), "open code": r("<code>a", n/4), "backticks": "<code>" + r("`", n) + "</code>", "brackets": r("[", n), "stars": r("*", n),
		"tables": r("<table>", n/2), "table rows": r("<table><tr><td>a<td>b", n/8), "cells": "<table><tr>" + r("<td>", n) + "</table>", "spans": "<table><tr><td colspan=1000000 rowspan=1000000>a<td>b</table>",
		"pre": r("<pre>", n), "lines": "<pre>" + r("\n", n), "white": r(" \n", n) + "x", "attributes": "<p " + r("a=b ", n/2) + ">x", "entities": r("&amp", n/4), "ampersands": r("&", n), "less": r("<", n), "comments": r("<!--", n/4), "svg": r("<svg>", n/4), "headings": r("<h1>a", n/4), "terms": r("<dl><dt>a<dd>b", n/8), "items": "<ul>" + r("<li>a", n/4), "images": r("<img alt=a src=b>", n/8),
		"canvases": r("<canvas>", n/8), "selects": r("<div><select>", n/8) + r("</div>", n/8), "hidden": r("<p hidden>a", n/8), "hidden divs": r("<div hidden>", n/8) + r("</div>", n/8), "styles": "<p style='" + r("display:none;", n/8) + "'>a", "names": func() string {
			var b strings.Builder
			for i := range n / 8 {
				fmt.Fprintf(&b, "<a%d>", i)
			}
			return b.String()
		}(), "deep ends": r("<b>", n/4) + r("</i></b><i>", n/8),
		"bases": r("<base href=a/>", n/8),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			m := toMarkdown(t, src)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("%d bytes took %v", len(src), took)
			}
			if len(m.out) > maxBody {
				t.Errorf("%d bytes became %d", len(src), len(m.out))
			}
			if took := time.Since(start); took > time.Second {
				t.Logf("%d bytes took %v", len(src), took)
			}
		})
	}
}

// What is made of a page is bounded, and cut at a character.
func TestMarkdownLimit(t *testing.T) {
	base := &url.URL{Scheme: "https", Host: "example.com"}
	for _, src := range []string{strings.Repeat("<p>é", 100), "<pre>" + strings.Repeat("é\n", 100), strings.Repeat("é", 300), strings.Repeat("<blockquote>", 50) + "a<br>b<br>c"} {
		m := newMarkdown(base, 101)
		if err := m.convert(context.Background(), src); err != nil {
			t.Fatal(err)
		}
		if got := m.text(); !m.cut || len(got) > 101 || len(got) < 99 || !utf8.ValidString(got) {
			t.Errorf("%.20q: cut %v, %d bytes: %q", src, m.cut, len(got), got)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := newMarkdown(base, 100).convert(ctx, "a"); err != context.Canceled {
		t.Errorf("after its end: %v", err)
	}
}

// FuzzMarkdown: any bytes become valid text of bounded length, all of it the
// page's own.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"<p>a<b>b</p>c", "<table><tr><td>a<td>b</table>", "<ul><li><pre>`\n``", "<a href=x><code>a<h1>b", "<svg><p>", "<object>a<p hidden>b<li>c</object>", "<noscript><table><tr hidden><td>", "<dl><dt>a<dd>b<blockquote>c", "<pre><table><tr><td>", "<table><tr><td>a<td>b<tr></table></table><ol start=5><li>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		src = strings.ToValidUTF8(src, "\uFFFD") // as decode leaves it
		m := toMarkdown(t, src)
		got := m.text()
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q", src, got)
		}
		if strings.Contains(got, "\n\n\n\n") && !strings.Contains(src, "pre") {
			t.Errorf("%q became %q", src, got)
		}
		if len(got) > 1000+200*len(src) {
			t.Errorf("%d bytes became %d", len(src), len(got))
		}
		for _, open := range []bool{m.table != nil && m.table.open, m.pre != nil, m.code != nil} {
			if open {
				t.Errorf("%q was left open", src)
			}
		}
	})
}
