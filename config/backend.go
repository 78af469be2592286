package config

// Backend configures where stores keep their objects. Only the field that Type
// names is set.
type Backend struct {
	Type     string // file, mongodb or dynamodb
	File     *FileBackend
	MongoDB  *MongoBackend
	DynamoDB *DynamoBackend
}

// FileBackend keeps objects in a folder.
type FileBackend struct {
	Folder string
	Cache  int64 // bytes of blocks; 0: according to the memory of the process
}

// MongoBackend names a database. The URL may hold a password.
type MongoBackend struct {
	URL      Secret
	Database string
	CA       string // as Config.CA
}

// DynamoBackend names a region or an custom endpoint. Credentials come
// from the AWS SDK's default chain.
type DynamoBackend struct {
	Region, Endpoint, TablePrefix string

	CA string // as Config.CA
}

// readBackends adds a backend called default, of type file, if none is configured.
func (c *Config) readBackends(s *section) {
	c.Backends = map[string]Backend{}
	s.named("backends", func(name string, s *section) { c.Backends[name] = c.readBackend(name, s) })
	if _, configured := c.Backends["default"]; !configured {
		c.Backends["default"] = c.readBackend("default", newSection(c.doc, "backends.default", nil))
	}
}

func (c *Config) readBackend(name string, s *section) Backend {
	b := Backend{Type: "file"}
	if !decode(s, "type", &b.Type, oneOf("file", "mongodb", "dynamodb")) {
		return b
	}
	s.suffix = "of a backend of type " + b.Type
	switch b.Type {
	case "file":
		b.File = &FileBackend{}
		c.folder(s, &b.File.Folder, "stores", name)
		decode(s, "cache", &b.File.Cache, sizeIn(1<<40))
	case "mongodb":
		m := MongoBackend{URL: "mongodb://127.0.0.1:27017", Database: "belfry"}
		s.doc.markSecret(join(s.path, "url"))
		decode(s, "url", &m.URL, parseMongoURL)
		decode(s, "database", &m.Database, parseName)
		b.MongoDB = &m
	case "dynamodb":
		y := DynamoBackend{TablePrefix: "belfry_"}
		decode(s, "region", &y.Region, parseNonEmpty)
		decode(s, "endpoint", &y.Endpoint, urlWithScheme("http", "https"))
		decode(s, "tablePrefix", &y.TablePrefix, parseText)
		b.DynamoDB = &y
	}
	s.rejectUnknown()
	return b
}
