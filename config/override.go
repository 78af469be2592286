package config

import (
	"fmt"
	"net"
	"path/filepath"

	"belfry/config/value"
)

// Override replaces listen and data by values from flags or the environment; ""
// keeps a value. Data is relative to the working directory. Defaults that depend
// on these two are computed again. The error is a Problems without a file, and c
// is then unchanged.
func (c *Config) Override(listen, data string) error {
	var problems Problems
	if listen != "" {
		if _, err := value.Address(listen); err != nil {
			problems = append(problems, Problem{Key: "listen", Message: fmt.Sprintf("%v, not %q: correct --listen or "+
				"BELFRY_LISTEN", err, listen)})
		} else if sameAddress(listen, c.Bus.Listen) {
			problems = append(problems, Problem{Key: "listen", Message: sameAsBus})
		} else if c.Development && !isLoopback(listen) {
			problems = append(problems, Problem{Key: "listen", Message: notLoopback})
		}
	}
	if data != "" {
		absolute, err := filepath.Abs(data)
		if err != nil {
			problems = append(problems, Problem{Key: "data", Message: "expected a path: " + value.Reason(err)})
		}
		data = absolute
	}
	if len(problems) > 0 {
		return problems
	}
	if listen != "" {
		c.Listen = listen
	}
	if data != "" {
		c.Data = data
	}
	c.derive()
	return nil
}

// BaseURLAt is the configured BaseURL or, when none is configured, the URL of the
// address that the HTTP server is bound to, which differs from Listen for port 0.
func (c *Config) BaseURLAt(bound string) string {
	if c.doc.IsSet("baseURL") {
		return c.BaseURL
	}
	return c.baseURLOf(bound)
}

// Local reports whether the links that belfry makes, when its HTTP server is bound to an address, lead to the
// machine itself, and only programs on it can connect.
func (c *Config) Local(bound string) bool { return isLocal(c.BaseURLAt(bound)) && isLoopback(bound) }

func (c *Config) baseURLOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		host = "localhost"
	}
	return c.scheme() + "://" + net.JoinHostPort(host, port)
}

// OverrideMetrics replaces metrics.listen by a value from a flag or the environment; ""
// keeps it. The error is a Problems without a file.
func (c *Config) OverrideMetrics(listen string) error {
	if listen == "" {
		return nil
	}
	if _, err := value.Address(listen); err != nil {
		return Problems{{Key: "metrics.listen", Message: fmt.Sprintf("%v, not %q: correct --metrics-listen or "+
			"BELFRY_METRICS_LISTEN", err, listen)}}
	}
	c.Metrics.Listen = listen
	if key := c.metricsConflict(); key != "" {
		return Problems{{Key: "metrics.listen", Message: "is also the address of " + key}}
	}
	return nil
}
