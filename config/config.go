// Package config reads belfry's configuration: one YAML (or JSON) file, checked
// as a whole before anything starts.
//
// Reading is strict. An unknown key, a value of the wrong form, a name that
// refers to nothing and two settings that contradict each other are problems;
// all of them are reported at once, each with file, line, column, key and what
// is expected there. What only other packages can judge (a policy's
// expression, a schema's content) they report at the same place through
// [Config.Problem].
//
// A Config is complete: every default is filled in, every path is absolute. It
// is not to be changed while others use it.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"
)

const day = 24 * time.Hour

// MaxObjectSize is what maxObjectSize can be at most, in bytes: an object has to
// fit into the event that tells of it.
const MaxObjectSize = 256 << 10

// Config is a whole configuration.
type Config struct {
	Listen          string         // host:port of HTTP
	BaseURL         string         // where clients reach it, without a slash at the end
	Proxies         []netip.Prefix // whose X-Forwarded-For is believed
	Data            string         // folder of everything that embedded mode writes
	MaxObjectSize   int64          // bytes; stores may have one of their own
	Tombstones      time.Duration  // how long the mark of a deletion is kept
	ShutdownTimeout time.Duration
	Log             Log
	Bus             Bus
	Events          EventStreams
	Documents       Documents
	Backends        map[string]Backend
	Stores          map[string]*Store
	Authentication  Authentication
	Mailers         map[string]Mailer
	Binaries        map[string]*Binary

	doc     *document
	derived []func() // set what follows from Listen and Data
}

// Log says how much is logged, and as "text" or "json".
type Log struct {
	Level  slog.Level
	Format string
}

// Load reads, completes and checks the configuration in a file. Every error is
// a Problems; it is of the kind errs.Invalid, also when there is no such file.
func Load(path string, env Lookup) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Problems{{File: path, Message: "cannot be read: " + reason(err)}}
	}
	return Parse(path, data, env)
}

// Parse is Load for a content that is at hand. The file is named in problems,
// and relative paths are relative to its folder.
func Parse(file string, data []byte, env Lookup) (*Config, error) {
	d := newDocument(file, env)
	root := d.parse(data)
	if err := d.failure(); err != nil {
		return nil, err
	}
	c := &Config{doc: d}
	c.read(newSection(d, "", root))
	for _, derive := range c.derived {
		derive()
	}
	c.check()
	if err := d.failure(); err != nil {
		return nil, err
	}
	return c, nil
}

// Problem is one that a later check finds with the value of a key, such as
// stores.Books.policy.update. A key that has its default, not being in the
// file, is placed at the nearest key around it. Line breaks become semicolons.
// The message must not repeat a value that may be secret.
func (c *Config) Problem(key, format string, args ...any) Problem {
	return c.doc.newProblem(key, format, args...)
}

// Override replaces what was configured by what a flag or the environment says;
// "" leaves a value as it is. Data is relative to the working directory. Values
// that follow from these two and were not configured follow again. The
// error is a Problems without a file, and c is then unchanged.
func (c *Config) Override(listen, data string) error {
	var problems Problems
	if listen != "" {
		if _, err := parseAddress(listen); err != nil {
			problems = append(problems, Problem{Key: "listen", Message: err.Error()})
		} else if sameAddress(listen, c.Bus.Listen) {
			problems = append(problems, Problem{Key: "listen", Message: sameAsBus})
		}
	}
	if data != "" {
		absolute, err := filepath.Abs(data)
		if err != nil {
			problems = append(problems, Problem{Key: "data", Message: "expected a path: " + reason(err)})
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
	for _, derive := range c.derived {
		derive()
	}
	return nil
}

// BaseURLAt is the configured BaseURL, or, when none is configured, the one that
// follows from the address HTTP was bound to. It matters for port 0.
func (c *Config) BaseURLAt(bound string) string {
	if c.doc.isSet("baseURL") {
		return c.BaseURL
	}
	return baseURLOf(bound)
}

func baseURLOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (c *Config) read(s *section) {
	c.Listen = "127.0.0.1:8080"
	decode(s, "listen", &c.Listen, parseAddress)
	decode(s, "baseURL", &c.BaseURL, parseBaseURL)
	if !s.has("baseURL") {
		c.derived = append(c.derived, func() { c.BaseURL = baseURLOf(c.Listen) })
	}
	for _, v := range s.list("proxies") {
		if p, ok := convert(s.doc, v, parsePrefix); ok {
			c.Proxies = append(c.Proxies, p)
		}
	}
	c.Data, _ = c.doc.path("data")
	decode(s, "data", &c.Data, c.doc.path)
	c.MaxObjectSize = MaxObjectSize
	decode(s, "maxObjectSize", &c.MaxObjectSize, sizeIn(MaxObjectSize))
	c.Tombstones = day
	decode(s, "tombstones", &c.Tombstones, durationIn(time.Second, maxDays*day, "of at least 1s"))
	c.ShutdownTimeout = 30 * time.Second
	decode(s, "shutdownTimeout", &c.ShutdownTimeout, durationIn(time.Second, time.Hour, "from 1s to 1h"))
	c.Log = readLog(s.section("log"))
	c.Bus = readBus(s.section("bus"))
	c.Events = readEventStreams(s.section("events"))
	c.Documents = readDocuments(s.section("documents"))
	c.readBackends(s)
	c.readAuthentication(s.section("authentication"))
	c.readStores(s)
	c.readMailers(s)
	c.readBinaries(s)
	s.suggestions = map[string]string{"port": "listen", "host": "listen", "url": "baseURL", "nats": "bus", "dataDir": "data"}
	s.rejectUnknown()
}

func readLog(s *section) Log {
	l := Log{Level: slog.LevelInfo, Format: "text"}
	decode(s, "level", &l.Level, parseLevel)
	decode(s, "format", &l.Format, oneOf("text", "json"))
	s.rejectUnknown()
	return l
}

// folder reads the path of a folder that belfry writes. One that is not
// configured lies in the data folder, wherever that will be.
func (c *Config) folder(s *section, into *string, inData ...string) {
	decode(s, "folder", into, c.doc.path)
	if !s.has("folder") {
		c.derived = append(c.derived, func() { *into = filepath.Join(append([]string{c.Data}, inData...)...) })
	}
}
