package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"capstan/internal/app"
)

// sessionFlags are the flags of every command that opens a session.
type sessionFlags struct {
	approvalMode string
	settings     []string
	mcpConfig    []string
	addDirs      []string
	trust        bool
	sandbox      bool
	agent        string
}

func (f *sessionFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.approvalMode, "approval-mode", "", "plan, default, auto-edit or yolo: what runs without asking")
	fl.StringArrayVar(&f.settings, "settings", nil, "a further settings file; may be repeated")
	fl.StringArrayVar(&f.mcpConfig, "mcp-config", nil, "a file of MCP servers, in the form of .mcp.json; may be repeated")
	fl.StringArrayVar(&f.addDirs, "add-dir", nil, "a further directory that counts as workspace; may be repeated")
	fl.BoolVar(&f.sandbox, "sandbox", false, "confine shell commands: they write and delete files in the workspace and temporary directories only")
	fl.BoolVar(&f.trust, "trust", false, "use this folder's settings for this run")
}

// registerAgent is for the commands whose session is that of an agent.
func (f *sessionFlags) registerAgent(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.agent, "agent", "", "the agent to be, of 'capstan agents list'")
}

func workingDirectory() (string, error) {
	dir, err := os.Getwd()
	if err == nil { // Getwd trusts $PWD, which may lead through links
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", failed(fmt.Errorf("the working directory %s cannot be used: %w", oneLine(os.Getenv("PWD"), 200), err))
	}
	return dir, nil
}

func (f *sessionFlags) options() (app.Options, error) {
	dir, err := workingDirectory()
	if err != nil {
		return app.Options{}, err
	}
	return app.Options{
		Dir:          dir,
		Env:          os.Getenv,
		Environ:      os.Environ(),
		MCPConfig:    f.mcpConfig,
		Version:      version(),
		ApprovalMode: f.approvalMode,
		Settings:     f.settings,
		AddDirs:      f.addDirs,
		Trust:        f.trust,
		Sandbox:      f.sandbox,
		Agent:        f.agent,
	}, nil
}

// warn tells a person what turned out while a session ran.
func warn(text string) { fmt.Fprintf(stderr, "capstan: warning: %s\n", text) }
