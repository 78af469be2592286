package config

// spreadCA has everything that connects by TLS to servers of others, and has no authorities of its own, trust those of the key ca too.
func (c *Config) spreadCA() {
	for _, b := range c.Backends {
		if b.MongoDB != nil {
			b.MongoDB.CA = c.CA
		}
		if b.DynamoDB != nil {
			b.DynamoDB.CA = c.CA
		}
	}
	for _, b := range c.Binaries {
		if b.S3 != nil {
			b.S3.CA = c.CA
		}
	}
	if c.Backup != nil && c.Backup.S3 != nil {
		c.Backup.S3.CA = c.CA
	}
	if c.Tracing.Endpoint != "" {
		c.Tracing.CA = c.CA
	}
	if len(c.Bus.URL) > 0 && c.Bus.TLS.CA == "" {
		c.Bus.ExtraCA = c.CA
	}
	if a := c.HTTP.ACME; a != nil && a.CA == "" {
		a.ExtraCA = c.CA
	}
}
