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
	_ "embed"
	"log/slog"
	"net/netip"
	"time"

	"belfry/config/decode"
	"belfry/config/value"
	"belfry/config/yamltext"
	"belfry/internal/gunzip"
)

const day = value.Day

// MaxObjectSize is the upper limit of maxObjectSize in bytes: an object has to fit
// into its event.
const MaxObjectSize = 256 << 10

// Config is a complete configuration. The tags of its fields, and of those of the sections, declare the keys of the
// file: see decode.Key.
type Config struct {
	// host:port of HTTP
	Listen string `key:"listen" is:"address" default:"127.0.0.1:8080" reload:"restart"`
	// URL at which clients reach belfry, without a final slash
	BaseURL string `key:"baseURL" is:"publicURL" reload:"live"`
	// names that requests may use for belfry, besides that in BaseURL and those of loopback; "*" is any
	Hosts []string `key:"hosts" is:"servedHost" reload:"live"`
	// proxies that are trusted to report the address of the client
	Proxies []netip.Prefix `key:"proxies" is:"network" reload:"live"`
	// folder for everything that belfry writes
	Data string `key:"data" is:"folder" default:"data" reload:"restart"`
	// replies explain denials; only for loopback
	Development bool `key:"development" reload:"live"`
	// bytes; a store may set its own
	MaxObjectSize int64 `key:"maxObjectSize" is:"size 256KiB" default:"256KiB" reload:"live"`
	// how long tombstones are kept
	Tombstones time.Duration `key:"tombstones" is:"duration 1s" default:"24h" reload:"live"`
	// CEL over user: true for admins
	Admins          string        `key:"admins" is:"expression" default:"user.admin == true" reload:"live"`
	ShutdownTimeout time.Duration `key:"shutdownTimeout" is:"duration 1s 1h" default:"30s" reload:"live"`
	// for which a process that stops still serves; /readyz is 503
	ShutdownDelay time.Duration `key:"shutdownDelay" is:"duration 0s 10m" reload:"live"`
	// objects that are read a second to fill mapped arrays from existing data; 0 is no limit
	FillRate int `key:"fillRate" is:"number 0 1000000" default:"1000" reload:"live"`

	Log            Log                `key:"log" reload:"live"`
	Metrics        Metrics            `key:"metrics" reload:"live"`
	Tracing        Tracing            `key:"tracing" reload:"live"`
	Bus            Bus                `key:"bus" reload:"restart"`
	Events         EventStreams       `key:"events" reload:"live"`
	Limits         RequestLimits      `key:"limits" reload:"live"`
	Documents      Documents          `key:"documents" reload:"live"`
	Backends       map[string]Backend `key:"backends" presence:"live" reload:"restart"`
	Authentication Authentication     `key:"authentication" reload:"live"`
	Stores         map[string]*Store  `key:"stores" reload:"live"`
	Mailers        map[string]Mailer  `key:"mailers" reload:"live"`
	Binaries       map[string]*Binary `key:"binaries" reload:"live"`
	Backup         *Backup            `key:"backup" reload:"live"` // nil: not configured
	Console        Console            `key:"console" reload:"live"`
	Static         *Static            `key:"static" reload:"live"` // nil: no front end is served
	Pages          Pages              `key:"pages" reload:"live"`
	Branding       Branding           `key:"branding" reload:"live"`
	HTTP           HTTP               `key:"http" reload:"live"`

	// in which proxies report the address of the client
	ProxyHeader string `key:"proxyHeader" is:"one X-Forwarded-For Forwarded" default:"X-Forwarded-For" reload:"live"`
	// how arrays of mappings above 64 KiB are kept: in chunks, which releases before can't read, or whole
	LargeArrays string `key:"largeArrays" is:"one chunks whole" default:"chunks" reload:"live"`
	// path of a PEM file of authorities that are trusted besides the system's; "" for none
	CA string `key:"ca" is:"file" reload:"live unless trusted"`

	_ struct{} `instead:"port=listen host=listen url=baseURL nats=bus dataDir=data"`

	doc      *decode.Document
	declared []string // the stores that the file has
	routes   []string // paths that are not of pages or files
}

// Log is the log level and format ("text" or "json").
type Log struct {
	Level  slog.Level `key:"level" is:"level" default:"info"`
	Format string     `key:"format" is:"one text json" default:"text"`
}

// Console configures the console for admins, at /console.
type Console struct {
	Enabled bool `key:"enabled" default:"true"`
	// admins change stores, providers, mailers and limits there, and belfry writes the file; by default as Development
	Edit bool `key:"edit"`
	// admins see there what another user may read
	Impersonation bool `key:"impersonation"`
}

// Documents configures which API documents are served.
type Documents struct {
	OpenAPI  bool `key:"openapi" default:"true"`
	AsyncAPI bool `key:"asyncapi" default:"true"`
}

// EventStreams limits the resources of GET /events.
type EventStreams struct {
	Clients int `key:"clients" is:"number 1 1000000" default:"10000"` // concurrent connections
	// connections per network address; 0 is no limit
	Address   int           `key:"address" is:"number 0 1000000" default:"200"`
	Heartbeat time.Duration `key:"heartbeat" is:"duration 1s 10m" default:"15s"` // interval of heartbeats
	// bytes of events cached for all clients
	Buffer int64 `key:"buffer" is:"size 4GiB" default:"16MiB"`

	_ struct{} `instead:"maxAge=bus.events.maxAge maxBytes=bus.events.maxBytes maxMessages=bus.events.maxMessages"`
}

// Load reads, completes and checks the configuration in a file. Every error is
// a Problems; it is errs.Invalid, also when the file does not exist.
func Load(path string, env Lookup) (*Config, error) {
	data, err := yamltext.Read(path)
	if err != nil {
		return nil, Problems{{File: path, Message: "cannot be read: " + value.Reason(err)}}
	}
	return Parse(path, data, env)
}

// Parse is Load for data in memory. Problems name the file, and relative paths are
// relative to its folder.
func Parse(file string, data []byte, env Lookup) (*Config, error) {
	c, doc, err := decode.Read[Config](file, data, env)
	if err != nil {
		return nil, err
	}
	c.doc = doc
	c.complete()
	c.derive()
	c.check()
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Problem makes a problem that a later check found at a key, such as
// stores.Books.policy.update. If the key is not in the file, the position is that
// of the nearest enclosing key. Line breaks become semicolons. The message must
// not repeat a value that may be secret.
func (c *Config) Problem(key, format string, args ...any) Problem {
	return c.doc.NewProblem(key, format, args...)
}

// complete sets defaults that depend on several sections, and adds what always exists.
func (c *Config) complete() {
	if !c.doc.IsSet("authentication.audit") {
		c.Authentication.Audit = c.Admins
	}
	if _, configured := c.Backends["default"]; !configured {
		c.Backends["default"] = *decode.Absent[Backend](c.doc, "backends", "default")
	}
	if _, configured := c.Mailers["default"]; !configured {
		c.Mailers["default"] = *decode.Absent[Mailer](c.doc, "mailers", "default")
	}
	if !c.doc.Valid("console.edit") {
		c.Console.Edit = c.Development
	}
	if s := c.Static; !c.doc.Valid("pages.enabled") {
		c.Pages.Enabled = s == nil || !s.SPA
	}
	c.completeStores()
	c.spreadCA()
}

// derive computes the defaults that depend on listen, data and baseURL, of which flags can change two later.
func (c *Config) derive() {
	if !c.doc.IsSet("baseURL") {
		c.BaseURL = c.baseURLOf(c.Listen)
	}
	c.doc.Derive(map[string]string{"data": c.Data})
	if !c.doc.IsSet("limits.loopback") {
		c.Limits.Loopback = !isLocal(c.BaseURL)
	}
	if e := c.Authentication.Email; e != nil {
		if !c.doc.IsSet("authentication.providers.email.from") {
			e.From = senderAt(c.BaseURL, c.Branding.Name)
		}
		e.From = c.Branding.named(e.From)
	}
	if p := c.Authentication.Passkeys; p != nil && !c.doc.IsSet("authentication.passkeys.rpName") {
		p.RPName = c.Branding.Name
	}
	for name, m := range c.Mailers {
		if m.SMTP != nil && !c.doc.IsSet(decode.Join("mailers", name)+".localName") {
			m.SMTP.LocalName = localNameOf(c.BaseURL)
		}
	}
}

// HasMailer reports whether the file has a mailer of a name. The mailer default exists without that.
func (c *Config) HasMailer(name string) bool { return c.doc.IsSet(decode.Join("mailers", name)) }

// spreadCA has everything that connects by TLS to servers of others, and has no authorities of its own, trust those of
// the key ca too.
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

// Tracing says where traces are sent; nowhere when Endpoint is empty.
type Tracing struct {
	Endpoint string  `key:"endpoint" is:"traceEndpoint"`  // of a receiver of OTLP over HTTP
	Ratio    float64 `key:"ratio" is:"ratio" default:"1"` // of the requests that are traced, 0 to 1
	CA       string  // as Config.CA
	// the name under which the spans of this process are found
	Service string `key:"service" is:"nonempty" default:"belfry"`
}

// schemaFile is the schema, compressed: the plain file is for editors.
//
//go:embed belfry.schema.json.gz
var schemaFile []byte

// SchemaName is how the schema's file is called beside a configuration that names it for editors.
const SchemaName = "belfry.schema.json"

// Schema returns the JSON Schema of a configuration, for editors. It accepts every configuration that Load accepts, and
// refuses unknown keys as Load does; what only Load can check, such as references and files, it leaves to Load.
func Schema() []byte { return gunzip.Bytes(schemaFile) }
