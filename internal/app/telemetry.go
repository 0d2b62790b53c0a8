package app

import (
	"time"

	"capstan/internal/agent"
	"capstan/internal/telemetry"
)

// otlpPatience is how long the end of a conversation waits for the collector.
const otlpPatience = 3 * time.Second

// telemetry starts what sends spans, when a setting says so and the standard
// variables name a collector. What is wrong with them ends the start: whoever
// wants an account of a run must not find out afterwards that there is none.
func (s *Session) telemetry(c *Conversation, version string) error {
	if !s.set.TelemetryOTLP {
		return nil
	}
	o, ok, err := telemetry.FromEnv(s.opt.Env)
	if err != nil {
		return &UsageError{err}
	}
	if !ok {
		s.warn("telemetry.otlp is on, and OTEL_EXPORTER_OTLP_ENDPOINT names no collector: nothing is sent")
		return nil
	}
	o.Version, o.Session, o.Provider, o.Model = version, c.ID, c.Model.Family, c.Model.Name
	o.Failed = func(err error) { s.notice("telemetry: " + err.Error()) }
	c.otlp = telemetry.New(o)
	return nil
}

// observed passes events on, and makes spans of them.
func (c *Conversation) observed(emit func(agent.Event)) func(agent.Event) {
	if c.otlp == nil {
		return emit
	}
	return func(e agent.Event) {
		c.otlp.Event(e)
		emit(e)
	}
}
