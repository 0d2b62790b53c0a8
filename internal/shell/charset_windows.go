package shell

import (
	"strconv"
	"syscall"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

var getACP = syscall.NewLazyDLL("kernel32.dll").NewProc("GetACP")

// legacyEncoding gives the encoding of the system's ANSI code page, or nil when
// that is UTF-8 or none that is known. Programs without a console use it.
func legacyEncoding([]string) encoding.Encoding {
	page, _, _ := getACP.Call()
	name, ok := map[uintptr]string{932: "shift_jis", 936: "gbk", 949: "euc-kr", 950: "big5"}[page]
	if !ok {
		name = "windows-" + strconv.Itoa(int(page))
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil
	}
	return e
}
