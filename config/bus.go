package config

import (
	"strings"
	"time"
)

// Bus configures the NATS connection: to the embedded server or, when URL is
// set, to an external cluster. The credentials apply to a cluster, and to an
// embedded server whose configuration file defines users.
type Bus struct {
	Listen      string   // host:port of the embedded server for other programs; "" is none, or as in Config
	Config      string   // path of a NATS configuration file for the embedded server
	URL         []string // servers of an external cluster
	Credentials string   // path of a credentials file
	User        string
	Password    Secret
	Token       Secret
	NKey        string // path of a file with an nkey seed
	TLS         TLS
	ExtraCA     string // as Config.CA, for a cluster without TLS.CA
	Events      Events
	Replicas    int // replicas of the streams in a cluster; 0 does not change them
}

// TLS holds paths of PEM files: trusted authorities, client certificate and key.
type TLS struct{ CA, Cert, Key string }

// Events is the retention of the event log. The oldest events are deleted when
// one of the limits is reached.
type Events struct {
	MaxAge      time.Duration
	MaxBytes    int64
	MaxMessages int64
}

// maxReplicas is the server's own limit.
const maxReplicas = 5

func readBus(s *section) Bus {
	b := Bus{Listen: "127.0.0.1:4222"}
	decode(s, "listen", &b.Listen, parseOptionalAddress)
	for _, v := range s.words("url") {
		if server, ok := convert(s.doc, v, urlWithScheme("nats", "tls", "ws", "wss")); ok {
			b.URL = append(b.URL, server)
		}
	}
	readPath(s, "config", &b.Config, ReadFile)
	if s.has("url") || s.has("config") && !s.has("listen") {
		b.Listen = ""
	}
	readPath(s, "credentials", &b.Credentials, ReadFile)
	decode(s, "user", &b.User, parseNonEmpty)
	decode(s, "password", &b.Password, parseSecret)
	decode(s, "token", &b.Token, parseSecret)
	readPath(s, "nkey", &b.NKey, ReadFile)
	b.TLS = readTLS(s.section("tls"))
	b.Events = readEvents(s.section("events"))
	var replicas int64
	decode(s, "replicas", &replicas, numberIn(1, maxReplicas))
	b.Replicas = int(replicas)
	s.rejectUnknown()
	checkBus(s, b)
	return b
}

func readTLS(s *section) TLS {
	var t TLS
	s.doc.markSecret(join(s.path, "key"))
	readPath(s, "ca", &t.CA, ReadFile)
	readPath(s, "cert", &t.Cert, ReadFile)
	readPath(s, "key", &t.Key, ReadFile)
	if s.has("cert") != s.has("key") {
		s.doc.problem(s.path, "expected both cert and key, or neither")
	}
	s.rejectUnknown()
	return t
}

func readEvents(s *section) Events {
	e := Events{MaxAge: 7 * day, MaxBytes: 4 << 30, MaxMessages: 1_000_000}
	decode(s, "maxAge", &e.MaxAge, durationIn(time.Second, maxDays*day, "of at least 1s"))
	decode(s, "maxBytes", &e.MaxBytes, sizeIn(1<<50))
	decode(s, "maxMessages", &e.MaxMessages, numberIn(1, 1_000_000_000_000))
	s.rejectUnknown()
	return e
}

// checkBus refuses settings that would be ignored: a password that has no effect
// would be taken for protection.
func checkBus(s *section, b Bus) {
	var methods []string
	for _, key := range [...]string{"credentials", "user", "token", "nkey"} {
		if s.has(key) {
			methods = append(methods, key)
		}
	}
	if len(methods) > 1 {
		s.problem(methods[1], "expected one authentication method, not both %s", strings.Join(methods, " and "))
	}
	if s.has("user") != s.has("password") {
		s.doc.problem(s.path, "expected both user and password, or neither")
	}
	switch {
	case s.has("url") && s.has("config"):
		s.problem("config", "configures the embedded server, which bus.url replaces; remove one of them")
	case s.has("config") && s.has("listen") && b.Listen == "":
		s.problem("listen", "cannot be empty when bus.config is set; to listen where that file says, remove this key")
	case !s.has("url") && !s.has("config"):
		for _, key := range [...]string{"credentials", "user", "password", "token", "nkey", "tls", "replicas"} {
			if s.has(key) {
				s.problem(key, "applies only to an external cluster or a server with its own configuration; set bus.url or bus.config, or remove this key")
			}
		}
	}
	for _, u := range b.URL {
		if strings.HasPrefix(u, "ws") != strings.HasPrefix(b.URL[0], "ws") {
			s.problem("url", "expected either ws and wss, or nats and tls; a client cannot mix them")
			break
		}
	}
}
