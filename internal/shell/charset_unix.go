//go:build !windows

package shell

import (
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// legacyEncoding gives the encoding of the locale that env sets, or nil when
// that is UTF-8, ASCII, or none that is known.
func legacyEncoding(env []string) encoding.Encoding {
	_, charset, _ := strings.Cut(locale(env), ".")
	charset, _, _ = strings.Cut(charset, "@")
	if charset == "" {
		return nil
	}
	return namedEncoding(charset)
}

func namedEncoding(charset string) encoding.Encoding {
	e, err := htmlindex.Get(charset)
	if err != nil {
		// Locales write ISO88591 and eucJP where the index has dashes.
		e, err = htmlindex.Get(strings.NewReplacer("ISO8859", "iso-8859-", "iso8859", "iso-8859-", "eucJP", "euc-jp",
			"eucKR", "euc-kr", "ujis", "euc-jp", "SJIS", "shift_jis", "CP", "windows-").Replace(charset))
	}
	if err != nil {
		return nil
	}
	if name, err := htmlindex.Name(e); err != nil || name == "utf-8" {
		return nil
	}
	return e
}
