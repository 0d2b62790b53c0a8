package builtin

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"capstan/internal/tool"
)

func TestTarget(t *testing.T) {
	for address, want := range map[string]string{
		"https://go.dev/x?y=z#f": "", "http://a.test:8080": "", "HTTPS://A.TEST": "", "http://127.0.0.1": "", "http://[::1]:80/": "", "http://xn--e1afmkfd.test": "", "http://a_b.test./": "",
		"":                                      "it has no scheme; write https://HOST/…",
		"go.dev":                                "it has no scheme; write https://HOST/…",
		"/etc/passwd":                           "it has no scheme; write https://HOST/…",
		"file:///etc/passwd":                    "its scheme is file; only http and https are fetched",
		"ftp://a.test":                          "its scheme is ftp; only http and https are fetched",
		"http:a.test":                           "it has no host; write http://HOST/…",
		"http://":                               "it has no host; write http://HOST/…",
		"http://:80":                            "it has no host; write http://HOST/…",
		"https://me:pw@a.test":                  "it has a user name or password in it, which are not sent; leave them out",
		"https://go.dev@a.test":                 "it has a user name or password in it, which are not sent; leave them out",
		"https://ｇo.dev":                        `its host "ｇo.dev" is not ASCII; write it in its xn-- form`,
		"https://go。dev":                        `its host "go。dev" is not ASCII; write it in its xn-- form`,
		"http://2130706433":                     `its host "2130706433" is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://0x7f000001":                     `its host "0x7f000001" is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://127.1":                          `its host "127.1" is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://0177.0.0.1":                     `its host "0177.0.0.1" is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://1.2.3.4.":                       `its host "1.2.3.4." is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://.":                              `its host "." is no host name, nor an IP address as 192.0.2.1 is one`,
		"http://[fe80::1%25eth0]/":              `its host "fe80::1%eth0" names a network of this machine; only addresses without a zone are fetched`,
		" http://a.test":                        "it is no web address: first path segment in URL cannot contain colon",
		"http://a b":                            "it is no web address: invalid character \" \" in host name",
		"http://a.test\r\nX: y":                 "it is no web address: net/url: invalid control character in URL",
		"http://a'b.test":                       `its host "a'b.test" is no host name`,
		"http://a.test:x":                       `it is no web address: invalid port ":x" after host`,
		"http://" + strings.Repeat("a", maxURL): "the address has 8199 bytes; at most 8192 are taken",
	} {
		got := ""
		if _, err := target(address); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.50q:\n got %s\nwant %s", address, got, want)
		}
	}
}

func TestPrivate(t *testing.T) {
	for what, list := range map[string]string{
		"":                      "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.167.255.255 198.20.0.0 223.255.255.255 2606:4700::1111 2a00::1 64:ff9b::8.8.8.8 ::ffff:8.8.8.8",
		"of this host":          "0.0.0.0 0.1.2.3 ::ffff:0.0.0.0",
		"private":               "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 198.18.0.1 198.19.255.255 fc00::1 fd12:3456::1 ::ffff:10.0.0.1 64:ff9b::10.0.0.1",
		"private to a provider": "100.64.0.1 100.127.255.255 ::ffff:100.64.0.1",
		"loopback":              "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 64:ff9b::127.0.0.1",
		"link-local":            "169.254.169.254 fe80::1 fe80::1%eth0 febf::1 ::ffff:169.254.169.254 64:ff9b::169.254.169.254",
		"multicast":             "224.0.0.1 239.255.255.255 ff02::1",
		"reserved":              "192.0.0.1 192.0.2.1 192.88.99.1 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255 :: ::2 ::127.0.0.1 fec0::1 100::1 64:ff9b:1::1 2001::1 2001:db8::1 3fff::1 4000::1 5f00::1",
		"a tunnel":              "2002:7f00:1::1",
	} {
		for s := range strings.FieldsSeq(list) {
			a, err := netip.ParseAddr(s)
			if err != nil {
				t.Fatal(err)
			}
			if got := private(a); got != what {
				t.Errorf("%s is %q, want %q", s, got, what)
			}
		}
	}
}

// servfail, in place of addresses, is a name whose servers do not answer.
const servfail = "SERVFAIL"

// names answers questions about names as a DNS server does: the addresses that
// a name has, or that it does not exist.
func resolver(names map[string][]string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			for answerOne(server, names) == nil {
			}
		}()
		return client, nil
	}}
}

func answerOne(c net.Conn, names map[string][]string) error {
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(b); err != nil {
		return err
	}
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	q := m.Questions[0]
	addrs, ok := names[strings.TrimSuffix(q.Name.String(), ".")]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	if slices.Contains(addrs, servfail) {
		m.RCode, addrs = dnsmessage.RCodeServerFailure, nil
	}
	for _, s := range addrs {
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch a := netip.MustParseAddr(s); {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()}})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
	return err
}

var hosts = map[string][]string{
	"inside.example.test": {"10.0.0.1"}, "metadata.example.test": {"169.254.169.254"}, "self.example.test": {"127.0.0.1", "::1"}, "mapped.example.test": {"::ffff:127.0.0.1"},
	"mixed.example.test": {"192.0.2.1", "127.0.0.1"}, "silent.example.test": {servfail},
}

// An address that is not public is not connected to, however it is spelled and
// whatever leads there: what counts is what is connected to.
func TestPrivateIsRefused(t *testing.T) {
	var asked atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	for host, want := range map[string]string{
		"127.0.0.1":             "127.0.0.1 is not on the public internet (loopback)",
		"[::ffff:127.0.0.1]":    "::ffff:127.0.0.1 leads to 127.0.0.1, which is not on the public internet (loopback)",
		"[::1]":                 "::1 is not on the public internet (loopback)",
		"0.0.0.0":               "0.0.0.0 is not on the public internet (of this host)",
		"localhost":             "localhost leads to ",
		"inside.example.test":   "inside.example.test leads to 10.0.0.1, which is not on the public internet (private)",
		"metadata.example.test": "metadata.example.test leads to 169.254.169.254, which is not on the public internet (link-local)",
		"self.example.test":     "self.example.test leads to ",
		"mapped.example.test":   "mapped.example.test leads to 127.0.0.1, which is not on the public internet (loopback)",
		"mixed.example.test":    "mixed.example.test leads to ",
	} {
		f := fetcher(false)
		f.dialer.Resolver = resolver(hosts)
		got := get(t, f, tool.FromModel, "none", "http://"+host+":"+port+"/")
		if got.Code != tool.CodeFailed || !strings.Contains(got.Text, want) || !strings.HasSuffix(got.Text, "; the user can allow such addresses with the setting web.allowPrivate") {
			t.Errorf("%s: %s %s", host, got.Code, got.Text)
		}
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
	f := fetcher(true)
	f.dialer.Resolver = resolver(hosts)
	if got := get(t, f, tool.FromModel, "none", "http://self.example.test:"+port+"/"); got.Code != "" || asked.Load() != 1 {
		t.Errorf("allowed: %+v", got)
	}
}

// Behind a proxy, whose address is the user's choice, a host is judged by what
// it means here, and left to the proxy when it means nothing here. One that
// could not be looked up may mean anything and is not left to it.
func TestProxy(t *testing.T) {
	var asked atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.RequestURI)
		_, _ = w.Write([]byte("by proxy"))
	})
	proxy := parsed(t, s.URL)
	for address, want := range map[string]string{
		"http://known.only.there.test/x":   "",
		"http://1.1.1.1/":                  "",
		"http://127.0.0.1/":                "127.0.0.1 is not on the public internet (loopback)",
		"http://[::ffff:169.254.169.254]/": "::ffff:169.254.169.254 is not on the public internet (link-local)",
		"http://localhost:1/":              "localhost is not on the public internet (loopback)",
		"http://a.LOCALHOST./":             "a.LOCALHOST. is not on the public internet (loopback)",
		"http://inside.example.test/":      "inside.example.test leads to 10.0.0.1, which is not on the public internet (private)",
		"https://mixed.example.test/":      "mixed.example.test leads to ",
		"http://silent.example.test/":      "looking up whether silent.example.test is on the public internet: ",
	} {
		asked.Store("")
		f := newWebFetch(WebOptions{Proxy: func(*http.Request) (*url.URL, error) { return proxy, nil }}).(*webFetch)
		f.dialer.Resolver = resolver(hosts)
		got := get(t, f, tool.FromProgram, "none", address)
		seen := asked.Load().(string)
		switch {
		case want == "" && (got.Text != "by proxy" || seen != "GET "+address):
			t.Errorf("%s: %+v, asked %q", address, got, seen)
		case want != "" && (got.Code != tool.CodeFailed || !strings.Contains(got.Text, want) || seen != ""):
			t.Errorf("%s: %+v, asked %q", address, got, seen)
		}
	}
}

// FuzzTarget: what is taken as an address has one host, which a rule about
// domains reads in the same way.
func FuzzTarget(f *testing.F) {
	for _, s := range []string{"https://go.dev/x", "http://[::1%25eth0]:80/", "http://[::%25\xa0]", "http://a@b", "HTTP://A.b.", "http://a\\b", "http://a%2eb", "//a", "http://1.2.3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := target(s)
		if err != nil {
			return
		}
		if judged, err := url.Parse(s); err != nil || judged.Hostname() != u.Hostname() { // as policy does
			t.Errorf("%q is judged as %v, %v, and fetched from %q", s, judged, err, u.Host)
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.User != nil {
			t.Errorf("%q has the host %q, and then %v, %v", s, u.Host, again, err)
		}
		req, err := http.NewRequest(http.MethodGet, u.String(), nil)
		if err != nil || req.URL.Hostname() != u.Hostname() {
			t.Errorf("%q: a request goes to %v, %v", s, req, err)
		}
		for _, c := range u.Hostname() {
			if _, err := netip.ParseAddr(u.Hostname()); err != nil && (c >= 0x80 || c <= ' ') {
				t.Errorf("%q has the host %q", s, u.Hostname())
			}
		}
	})
}
