package qjswasm

import "capstan/internal/sandbox/bin"

// binary stands in for encoding/binary in the generated code, whose import of
// it script/engine takes out (see package bin).
var binary = struct{ LittleEndian bin.Order }{}
