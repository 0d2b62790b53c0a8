// Command capstan is a code-mode agent runtime.
package main

func main() {}
