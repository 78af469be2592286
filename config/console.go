package config

// Console configures the console for admins, at /console.
type Console struct{ Enabled bool }

func readConsole(s *section) Console {
	c := Console{Enabled: true}
	decode(s, "enabled", &c.Enabled, parseFlag)
	s.rejectUnknown()
	return c
}
