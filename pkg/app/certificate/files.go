package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// checkInterval is how often files are read again.
const checkInterval = 10 * time.Second

// Files has the certificate of two files, and uses them again when they change. It is safe for concurrent use.
type Files struct {
	log     *slog.Logger
	now     func() time.Time
	current atomic.Pointer[Pair]
	mu      sync.Mutex // held while current changes
	host    string     // a name that clients use; "" for any
	failed  string     // why the files could not be used the last time; "" if they could
	warned  []string   // of current

	stop chan struct{}
	done chan struct{}
}

// NewFiles uses a pair until its files change. host is a name that clients use, "" for any: a certificate for other
// names is warned about. Close ends it.
func NewFiles(p *Pair, host string, log *slog.Logger) *Files {
	return newFiles(p, host, log, checkInterval, time.Now)
}

func newFiles(p *Pair, host string, log *slog.Logger, interval time.Duration, now func() time.Time) *Files {
	f := &Files{log: log, now: now, stop: make(chan struct{}), done: make(chan struct{})}
	f.Use(p, host)
	go f.follow(interval)
	return f
}

// Use replaces the pair and the name that clients use, and reports whether the pair is another one.
func (f *Files) Use(p *Pair, host string) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.host = host
	return f.use(p)
}

func (f *Files) use(p *Pair) (changed bool) {
	before := f.current.Swap(p)
	f.failed = ""
	if p.Same(before) {
		return false
	}
	f.warned = nil
	f.warn(p)
	if before != nil {
		f.log.Info("the certificate has changed", "certificate", p.cert, "until", p.certificate.Leaf.NotAfter.UTC())
	}
	return true
}

// warn logs each new warning once: some warnings only appear as the certificate ages.
func (f *Files) warn(p *Pair) {
	for _, text := range p.Warnings(f.host, f.now()) {
		if !slices.Contains(f.warned, text) {
			f.warned = append(f.warned, text)
			f.log.Warn(text)
		}
	}
}

// TLSConfig returns the settings of a server. Each connection uses the certificate at its time.
func (f *Files) TLSConfig() *tls.Config {
	return settings(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &f.current.Load().certificate, nil })
}

// Leaf returns the current certificate.
func (f *Files) Leaf() *x509.Certificate { return f.current.Load().Leaf() }

// follow reads the files from time to time.
func (f *Files) follow(interval time.Duration) {
	defer close(f.done)
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-tick.C:
			f.check()
		}
	}
}

// check uses the files if they have changed. While they can't be used, the former pair stays in use: a program that
// replaces them writes one after the other.
func (f *Files) check() {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.current.Load()
	next, err := Load(now.cert, now.key)
	switch {
	case err == nil && (f.failed != "" || !next.Same(now)):
		f.use(next)
	case err == nil:
		f.warn(now)
	case err.Error() != f.failed:
		f.failed = err.Error()
		f.log.Error("the changed certificate can't be used; the former one stays in use", "error", err)
	}
}

// Close stops reading the files.
func (f *Files) Close() {
	close(f.stop)
	<-f.done
}
