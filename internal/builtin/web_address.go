package builtin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// maxURL is how long an address may be, in bytes: what servers commonly take.
const maxURL = 8192

// target reads the address of a page. A host has one spelling here, which is
// the one that package policy judged: whatever a resolver or IDNA would turn
// into another host is refused.
func target(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the address has %d bytes; at most %d are taken", len(raw), maxURL)
	}
	u, err := url.Parse(raw) // not trimmed: policy reads the same bytes in the same way
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the address, which the caller names
		}
		return nil, fmt.Errorf("it is no web address: %w", err)
	}
	switch {
	case u.Scheme == "":
		return nil, errors.New("it has no scheme; write https://HOST/…")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("its scheme is %s; only http and https are fetched", u.Scheme)
	case u.User != nil:
		return nil, errors.New("it has a user name or password in it, which are not sent; leave them out")
	case u.Opaque != "" || u.Hostname() == "":
		return nil, errors.New("it has no host; write " + u.Scheme + "://HOST/…")
	}
	if err := plainHost(u.Hostname()); err != nil {
		return nil, err
	}
	u.RawQuery = plainQuery(u.RawQuery)
	return u, nil
}

// plainQuery escapes what net/url leaves in a query and browsers do not: it
// would break the line of a request, and the line that names the address.
func plainQuery(q string) string {
	var b strings.Builder
	for _, c := range []byte(q) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"<>[]`, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// plainHost takes names of ASCII letters, digits, -, _ and dots, and IP
// addresses in their usual spelling.
func plainHost(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return fmt.Errorf("its host %q names a network of this machine; only addresses without a zone are fetched", host)
		}
		return nil
	}
	for _, c := range []byte(host) {
		switch {
		case c >= 0x80:
			return fmt.Errorf("its host %q is not ASCII; write it in its xn-- form", host)
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
		default:
			return fmt.Errorf("its host %q is no host name", host)
		}
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(strings.ToLower(last), "0x") { // as browsers judge it; and of an empty label
		return fmt.Errorf("its host %q is no host name, nor an IP address as 192.0.2.1 is one", host)
	}
	return nil
}

// reserved lists what is not on the public internet, by the registries of
// special-purpose addresses of IANA.
var reserved = []struct {
	prefix netip.Prefix
	what   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "of this host"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "private to a provider"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("198.18.0.0/15"), "private"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo too
	{netip.MustParsePrefix("2001:db8::/32"), "reserved"},
	{netip.MustParsePrefix("2002::/16"), "a tunnel"}, // 6to4
	{netip.MustParsePrefix("3fff::/20"), "reserved"},
}

var (
	global6 = netip.MustParsePrefix("2000::/3")     // all that is given out
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // an IPv4 address in its last bytes
)

// private says why an address is not on the public internet, or "". An IPv4
// address inside another one is judged as what it leads to.
func private(a netip.Addr) string {
	a = a.WithZone("").Unmap()
	if nat64.Contains(a) {
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	for _, r := range reserved {
		if r.prefix.Contains(a) {
			return r.what
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "reserved"
	}
	return ""
}

// A privateError says that a host leads to an address which is not fetched.
type privateError struct{ host, addr, what string }

func (e *privateError) Error() string {
	at := e.addr
	if e.host != "" && e.host != e.addr {
		at = e.host + " leads to " + e.addr + ", which"
	}
	return fmt.Sprintf("%s is not on the public internet (%s); the user can allow such addresses with the setting web.allowPrivate", at, e.what)
}

// guard is asked about each address just before it is connected to, when its
// name has been resolved for good: what a name meant a moment ago does not
// matter.
func guard(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	if what := private(a); what != "" {
		return &privateError{addr: a.String(), what: what}
	}
	return nil
}

// transport returns what one request goes through. It has no connections of
// others and keeps none.
//
// Behind a proxy it is the proxy that connects, and what a name means there
// cannot be seen from here. Then the host is judged by what it means here; a
// name that there is none of here is left to the proxy, whose own address the
// user chose. One that could not be looked up is not: it may be a private one.
func (t *webFetch) transport(ctx context.Context, req *http.Request) (*http.Transport, error) {
	proxy, err := t.proxy(req)
	if err != nil {
		return nil, fmt.Errorf("finding the proxy: %w", err)
	}
	dial := t.dialer
	dial.Timeout = 10 * time.Second
	tr := &http.Transport{
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		TLSClientConfig:        t.tls,
	}
	switch {
	case proxy != nil:
		tr.Proxy = http.ProxyURL(proxy)
		if !t.allowPrivate {
			if err := t.known(ctx, req.URL.Hostname()); err != nil {
				return nil, err
			}
		}
	case !t.allowPrivate:
		dial.Control = guard
	}
	tr.DialContext = dial.DialContext
	return tr, nil
}

// known judges a host that a proxy will connect to.
func (t *webFetch) known(ctx context.Context, host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		if what := private(a); what != "" {
			return &privateError{addr: host, what: what}
		}
		return nil
	}
	if name := "." + strings.TrimSuffix(strings.ToLower(host), "."); strings.HasSuffix(name, ".localhost") {
		return &privateError{addr: host, what: "loopback"}
	}
	look, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resolver := t.dialer.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	addrs, err := resolver.LookupNetIP(look, "ip", host)
	var dns *net.DNSError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &dns) && dns.IsNotFound:
		return nil // only the proxy knows it
	case err != nil:
		return fmt.Errorf("looking up whether %s is on the public internet: %w; where names can be looked up only by the proxy, the user can leave all to it with the setting web.allowPrivate", host, err)
	}
	for _, a := range addrs {
		if what := private(a); what != "" {
			return &privateError{addr: a.Unmap().String(), what: what}
		}
	}
	return nil
}
