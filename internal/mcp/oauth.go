package mcp

import "github.com/modelcontextprotocol/go-sdk/auth"

// Logins is filled in by slice 5.
type Logins struct{}

func (m *Manager) oauth(c *Config) auth.OAuthHandler { return nil }
