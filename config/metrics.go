package config

// Metrics says where GET /metrics is served; nowhere when both are empty.
type Metrics struct {
	Listen string `key:"listen" is:"addressOrNone"` // host:port of its own
	Token  Secret `key:"token" is:"metricsToken"`   // which a request has to carry, there and on the port of HTTP
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
