package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// logins is how often the client logs in before it gives up: once when the
// server wants it, once more for a scope that it wants later, and once to see
// that a server which is never content is left alone.
const logins = 3

// program calls every tool that the server has. Nothing in it depends on the
// scenario.
const program = `
const mine = ALL_TOOLS.filter(t => t.name.startsWith("mcp__conformance__"));
for (const t of mine) {
	const r = await tools[t.jsName](t.name.endsWith("add_numbers") ? { a: 5, b: 3 } : {});
	text(t.name + ": " + r.output);
}`

// client is what the suite runs for a scenario, with the address of its server.
// It does what a person with Capstan would: configures the server, runs a
// program, and logs in when told to.
func client(ctx context.Context, address string) error {
	bin := os.Getenv(binVariable)
	if bin == "" {
		return fmt.Errorf("%s is not set: the suite runs this command, not a person", binVariable)
	}
	home, err := os.MkdirTemp("", "capstan-conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	c := &capstan{bin: bin, home: home, config: filepath.Join(home, "servers.json")}
	if err := c.configure(address, os.Getenv("MCP_CONFORMANCE_CONTEXT")); err != nil {
		return err
	}
	for n := 0; ; n++ {
		said, err := c.exec(ctx)
		fmt.Print(said)
		if !strings.Contains(said, "capstan mcp login conformance") {
			return err
		}
		if n == logins {
			return fmt.Errorf("it wants a login again after %d", n)
		}
		if err := c.login(ctx); err != nil {
			return err
		}
	}
}

// A capstan is the binary under test with a home of its own.
type capstan struct{ bin, home, config string }

// configure writes the server's entry. What the suite tells a client beforehand,
// such as the id that it is registered under, is what a person would be told.
func (c *capstan) configure(address, told string) error {
	var context struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if told != "" {
		if err := json.Unmarshal([]byte(told), &context); err != nil {
			return fmt.Errorf("reading MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	server := map[string]any{"type": "http", "url": address}
	if context.ClientID != "" {
		server["oauth"] = map[string]string{"clientId": context.ClientID, "clientSecret": context.ClientSecret}
	}
	b, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"conformance": server}})
	if err != nil {
		return err
	}
	return os.WriteFile(c.config, b, 0o600)
}

func (c *capstan) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.bin, append(args, "--mcp-config", c.config)...)
	cmd.Dir = c.home
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.home, "TERM=dumb"}
	return cmd
}

// exec runs the program on a terminal, where every question is answered with
// Enter, and returns what was said.
func (c *capstan) exec(ctx context.Context) (string, error) {
	var said bytes.Buffer
	err := onTerminal(c.command(ctx, "exec", "--approval-mode", "yolo", "-e", program), &said)
	if err != nil {
		err = fmt.Errorf("capstan exec: %w", err)
	}
	return said.String(), err
}

var link = regexp.MustCompile(`(?m)^https?://\S+`)

// login runs `capstan mcp login` and is its browser.
func (c *capstan) login(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	cmd := c.command(ctx, "mcp", "login", "conformance")
	cmd.Stdout = os.Stdout
	out, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var said bytes.Buffer
	visited := false
	buf := make([]byte, 4096)
	for {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if at := link.FindString(said.String()); at != "" && strings.Contains(said.String(), at+"\n") && !visited {
			visited = true
			visit(ctx, at)
		}
		if err != nil {
			break
		}
	}
	fmt.Print(said.String())
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("capstan mcp login: %w", err)
	}
	return nil
}

// visit opens an address as a browser does, redirects included. What goes wrong
// shows in the login.
func visit(ctx context.Context, address string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println("visiting:", err)
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	resp.Body.Close()
}
