// Package config reads belfry's configuration: one YAML (or JSON) file, which
// is validated completely before anything starts.
//
// Reading is strict. An unknown key, an invalid value, a reference to an
// unknown name and contradicting settings are problems; all of them are reported
// at once, each with file, line, column, key and what is expected. Other packages
// report what only they can validate (a policy's expression, a schema's content)
// at the same position through [Config.Problem].
//
// A Config is complete: every default is filled in, every path is absolute. It
// must not be modified while it is in use.
package config

import (
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"time"
)

const day = 24 * time.Hour

// MaxObjectSize is the upper limit of maxObjectSize in bytes: an object has to fit
// into its event.
const MaxObjectSize = 256 << 10

// Config is a complete configuration.
type Config struct {
	Listen          string         // host:port of HTTP
	BaseURL         string         // URL at which clients reach belfry, without a final slash
	Hosts           []string       // names that requests may use for belfry, besides that in BaseURL and those of loopback; "*" is any
	Proxies         []netip.Prefix // proxies that are trusted to report the address of the client
	ProxyHeader     string         // in which they do: X-Forwarded-For or Forwarded
	CA              string         // path of a PEM file of authorities that are trusted besides the system's; "" for none
	Data            string         // folder for everything that belfry writes
	Development     bool           // replies explain denials; for loopback alone
	MaxObjectSize   int64          // bytes; a store may set its own
	Tombstones      time.Duration  // how long tombstones are kept
	Admins          string         // CEL over user: who is an admin
	ShutdownTimeout time.Duration
	ShutdownDelay   time.Duration // for which a process that stops still serves; /readyz is 503
	FillRate        int           // objects that are read a second to fill mapped arrays from existing data; 0 is no limit
	HTTP            HTTP
	Log             Log
	Metrics         Metrics
	Tracing         Tracing
	Bus             Bus
	Events          EventStreams
	Limits          RequestLimits
	Documents       Documents
	Console         Console
	Static          *Static // nil: no front end is served
	Pages           Pages
	Backends        map[string]Backend
	Stores          map[string]*Store
	Authentication  Authentication
	Mailers         map[string]Mailer
	Binaries        map[string]*Binary
	Backup          *Backup // nil: not configured

	doc      *document
	pagesOn  bool
	declared []string // the stores that the file has
	routes   []string // paths that are not of pages or files
	derived  []func() // compute defaults that depend on Listen and Data
}

// Log is the log level and format ("text" or "json").
type Log struct {
	Level  slog.Level
	Format string
}

// Load reads, completes and checks the configuration in a file. Every error is
// a Problems; it is errs.Invalid, also when the file does not exist.
func Load(path string, env Lookup) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Problems{{File: path, Message: "cannot be read: " + reason(err)}}
	}
	return Parse(path, data, env)
}

// Parse is Load for data in memory. Problems name the file, and relative paths are
// relative to its folder.
func Parse(file string, data []byte, env Lookup) (*Config, error) {
	d := newDocument(file, env)
	root := d.parse(data)
	if err := d.failure(); err != nil {
		return nil, err
	}
	d.root = root
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

// Problem makes a problem that a later check found at a key, such as
// stores.Books.policy.update. If the key is not in the file, the position is that
// of the nearest enclosing key. Line breaks become semicolons. The message must
// not repeat a value that may be secret.
func (c *Config) Problem(key, format string, args ...any) Problem {
	return c.doc.newProblem(key, format, args...)
}

// Override replaces listen and data by values from flags or the environment; ""
// keeps a value. Data is relative to the working directory. Defaults that depend
// on these two are computed again. The error is a Problems without a file, and c
// is then unchanged.
func (c *Config) Override(listen, data string) error {
	var problems Problems
	if listen != "" {
		if _, err := parseAddress(listen); err != nil {
			problems = append(problems, Problem{Key: "listen", Message: err.Error()})
		} else if sameAddress(listen, c.Bus.Listen) {
			problems = append(problems, Problem{Key: "listen", Message: sameAsBus})
		} else if c.Development && !isLoopback(listen) {
			problems = append(problems, Problem{Key: "listen", Message: notLoopback})
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

// BaseURLAt is the configured BaseURL or, when none is configured, the URL of the
// address that the HTTP server is bound to, which differs from Listen for port 0.
func (c *Config) BaseURLAt(bound string) string {
	if c.doc.isSet("baseURL") {
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

func (c *Config) read(s *section) {
	c.Listen = "127.0.0.1:8080"
	decode(s, "listen", &c.Listen, parseAddress)
	decode(s, "baseURL", &c.BaseURL, parsePublicURL)
	if !s.has("baseURL") {
		c.derived = append(c.derived, func() { c.BaseURL = c.baseURLOf(c.Listen) })
	}
	for _, v := range s.list("hosts") {
		if host, ok := convert(s.doc, v, parseServedHost); ok {
			c.Hosts = append(c.Hosts, host)
		}
	}
	for _, v := range s.list("proxies") {
		if p, ok := convert(s.doc, v, parsePrefix); ok {
			c.Proxies = append(c.Proxies, p)
		}
	}
	c.Data, _ = c.doc.path("data")
	readPath(s, "data", &c.Data, WrittenFolder)
	decode(s, "development", &c.Development, parseFlag)
	c.MaxObjectSize = MaxObjectSize
	decode(s, "maxObjectSize", &c.MaxObjectSize, sizeIn(MaxObjectSize))
	c.Tombstones = day
	decode(s, "tombstones", &c.Tombstones, durationIn(time.Second, maxDays*day, "of at least 1s"))
	c.Admins = "user.admin == true"
	decode(s, "admins", &c.Admins, parseNonEmpty)
	c.ShutdownTimeout = 30 * time.Second
	decode(s, "shutdownTimeout", &c.ShutdownTimeout, durationIn(time.Second, time.Hour, "from 1s to 1h"))
	decode(s, "shutdownDelay", &c.ShutdownDelay, durationIn(0, 10*time.Minute, "from 0s to 10m"))
	c.FillRate = 1000
	decode(s, "fillRate", &c.FillRate, requestRate)
	c.Log = readLog(s.section("log"))
	c.Metrics = readMetrics(s.section("metrics"))
	c.Tracing = readTracing(s.section("tracing"))
	c.Bus = readBus(s.section("bus"))
	c.Events = readEventStreams(s.section("events"))
	c.readLimits(s.section("limits"))
	c.Documents = readDocuments(s.section("documents"))
	c.readBackends(s)
	c.readAuthentication(s.section("authentication"))
	c.readStores(s)
	c.readMailers(s)
	c.readBinaries(s)
	if backup := s.section("backup"); s.has("backup") || c.doc.recorder != nil {
		c.readBackup(backup)
	}
	c.Console = readConsole(s.section("console"))
	if static := s.section("static"); s.has("static") || c.doc.recorder != nil {
		c.readStatic(static)
	}
	c.readPages(s.section("pages"))
	c.readHTTP(s.section("http"))
	c.ProxyHeader = "X-Forwarded-For"
	decode(s, "proxyHeader", &c.ProxyHeader, oneOf("X-Forwarded-For", "Forwarded"))
	readPath(s, "ca", &c.CA, ReadFile)
	c.spreadCA()
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

// folder reads the path of a folder that belfry writes. The default is
// inside the data folder, which Override may still change.
func (c *Config) folder(s *section, into *string, inData ...string) {
	readPath(s, "folder", into, WrittenFolder)
	if !s.has("folder") {
		c.derived = append(c.derived, func() { *into = filepath.Join(append([]string{c.Data}, inData...)...) })
	}
}
