package config

import (
	"strings"
	"time"

	"belfry/config/decode"
)

// Bus configures the NATS connection: to the embedded server or, when URL is
// set, to an external cluster. The credentials apply to a cluster, and to an
// embedded server whose configuration file defines users.
type Bus struct {
	// host:port of the embedded server for other programs; "": no listener, or as in Config
	Listen string `key:"listen" is:"addressOrNone" default:"127.0.0.1:4222"`
	// servers of an external cluster
	URL []string `key:"url" list:"words" is:"url nats tls ws wss"`
	// path of a NATS configuration file for the embedded server
	Config string `key:"config" is:"file"`
	// path of a credentials file
	Credentials string `key:"credentials" is:"file"`
	User        string `key:"user" is:"nonempty"`
	Password    Secret `key:"password" reload:"live unless embedded"`
	Token       Secret `key:"token" reload:"live unless authenticated"`
	// path of a file with an nkey seed
	NKey    string `key:"nkey" is:"file"`
	TLS     TLS    `key:"tls"`
	ExtraCA string // as Config.CA, for a cluster without TLS.CA
	Events  Events `key:"events" reload:"live"`
	// replicas of the streams in a cluster; 0 does not change them. 5 is the server's own limit
	Replicas int `key:"replicas" is:"number 1 5" reload:"live"`
}

// TLS holds paths of PEM files: trusted authorities, client certificate and key.
type TLS struct {
	CA   string `key:"ca" is:"file"`
	Cert string `key:"cert" is:"file"`
	Key  string `key:"key" is:"file" secret:"true"`
}

// Events is the retention of the event log. The oldest events are deleted when
// one of the limits is reached.
type Events struct {
	MaxAge      time.Duration `key:"maxAge" is:"duration 1s" default:"7d"`
	MaxBytes    int64         `key:"maxBytes" is:"size 1024TiB" default:"4GiB"`
	MaxMessages int64         `key:"maxMessages" is:"number 1 1000000000000" default:"1000000"`
}

// Validate refuses half a certificate.
func (t *TLS) Validate(s *decode.Section) {
	if s.Has("cert") != s.Has("key") {
		s.Problem("", "expected both cert and key, or neither")
	}
}

// Validate refuses settings that would be ignored: a password that has no effect
// would be taken for protection.
func (b *Bus) Validate(s *decode.Section) {
	if s.Has("url") || s.Has("config") && !s.Has("listen") {
		b.Listen = ""
	}
	var methods []string
	for _, key := range [...]string{"credentials", "user", "token", "nkey"} {
		if s.Has(key) {
			methods = append(methods, key)
		}
	}
	if len(methods) > 1 {
		s.Problem(methods[1], "expected one authentication method, not both %s", strings.Join(methods, " and "))
	}
	if s.Has("user") != s.Has("password") {
		s.Problem("", "expected both user and password, or neither")
	}
	switch {
	case s.Has("url") && s.Has("config"):
		s.Problem("config", "configures the embedded server, which bus.url replaces; remove one of them")
	case s.Has("config") && s.Has("listen") && b.Listen == "":
		s.Problem("listen", "cannot be empty when bus.config is set; to listen where that file says, remove this key")
	case !s.Has("url") && !s.Has("config"):
		for _, key := range [...]string{"credentials", "user", "password", "token", "nkey", "tls", "replicas"} {
			if s.Has(key) {
				s.Problem(key, "applies only to an external cluster or a server with its own configuration; set "+
					"bus.url or bus.config, or remove this key")
			}
		}
	}
	for _, u := range b.URL {
		if strings.HasPrefix(u, "ws") != strings.HasPrefix(b.URL[0], "ws") {
			s.Problem("url", "expected either ws and wss, or nats and tls; a client cannot mix them")
			break
		}
	}
}
