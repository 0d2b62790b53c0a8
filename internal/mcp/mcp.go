// Package mcp makes the tools of MCP servers tools of ours (client side).
//
// A [Manager] starts the configured servers side by side and in the background,
// keeps their tools in the registry, restarts what crashes, and says of each
// server how it is and why. Its tools run as every other tool does: they are
// validated, judged and scheduled by others.
//
// The protocol is the official SDK's. Ours is what real servers need beyond it:
// a stdio transport that survives noise, results and schemas in the server's own
// bytes, bounds on everything that a server sends, and the policy that nothing a
// server says loosens a rule.
//
// It reads no settings files and no environment by itself, opens no browser, and
// trusts no server: names, descriptions, schemas and results are data.
package mcp

import "time"

// The times and sizes that hold unless a server's configuration says otherwise.
const (
	// DefaultStartup is how long a server may take to connect and list its tools.
	DefaultStartup = 30 * time.Second
	// DefaultTimeout is how long a call may go on without progress.
	DefaultTimeout = 5 * time.Minute
	// longestCall bounds a call that reports progress for ever, or the call's
	// own timeout if that is longer.
	longestCall = time.Hour

	maxMessage     = 32 << 20 // bytes of one message of a server
	maxTools       = 10_000   // of one server
	maxPages       = 1_000    // of one list
	maxDescription = 32 << 10 // bytes of a tool's description
	maxPatterns    = 8 << 20  // bytes of the compiled patterns of one server's tools
	maxWarnings    = 50       // kept of one server
	stderrTail     = 8 << 10  // bytes kept for errors (BUG-MC-13)
)
