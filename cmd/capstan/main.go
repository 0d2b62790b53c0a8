// Command capstan is a code-mode agent runtime.
package main

import _ "capstan/internal/sandbox/quickjs" // its child takes the process over in init

func main() {}
