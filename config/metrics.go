package config

import "errors"

// Metrics says where GET /metrics is served; nowhere when both are empty.
type Metrics struct {
	Listen string // host:port of its own
	Token  Secret // which a request has to carry, there and on the port of HTTP
}

// minMetricsToken is the length of a token that can't be guessed.
const minMetricsToken = 16

func readMetrics(s *section) Metrics {
	var m Metrics
	decode(s, "listen", &m.Listen, parseOptionalAddress)
	decode(s, "token", &m.Token, parseMetricsToken)
	s.rejectUnknown()
	return m
}

func parseMetricsToken(text string) (Secret, error) {
	if text != "" && len(text) < minMetricsToken {
		return "", errors.New("expected at least 16 characters, or nothing for no token")
	}
	for _, c := range text {
		if c <= ' ' || c > '~' {
			return "", errors.New("expected printable ASCII characters without spaces")
		}
	}
	return Secret(text), nil
}

// OverrideMetrics replaces metrics.listen by a value from a flag or the environment; ""
// keeps it. The error is a Problems without a file.
func (c *Config) OverrideMetrics(listen string) error {
	if listen == "" {
		return nil
	}
	if _, err := parseAddress(listen); err != nil {
		return Problems{{Key: "metrics.listen", Message: err.Error()}}
	}
	c.Metrics.Listen = listen
	if key := c.metricsConflict(); key != "" {
		return Problems{{Key: "metrics.listen", Message: "is also the address of " + key}}
	}
	return nil
}

// metricsConflict returns the key of another server at the address of the metrics.
func (c *Config) metricsConflict() string {
	switch {
	case sameAddress(c.Metrics.Listen, c.Listen):
		return "listen; metrics have a port of their own"
	case sameAddress(c.Metrics.Listen, c.Bus.Listen):
		return "bus.listen; metrics have a port of their own"
	}
	return ""
}
