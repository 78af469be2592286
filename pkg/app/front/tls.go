package front

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/prom"
	"belfry/pkg/api"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/port"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// TLS serves HTTP with TLS if the configuration enables it.
type TLS struct {
	served   *serving.Current
	roles    serving.Roles
	log      *slog.Logger
	fail     func(error)
	metrics  prometheus.Registerer
	stopping <-chan struct{} // closed when the process stops

	ready   chan struct{}           // closed once now is set
	now     atomic.Pointer[secured] // nil: before the start
	port    *port.Port              // that redirects; nil for none
	Address string                  // of that port
}

// NewTLS returns the parts of a process that make its connections secure.
func NewTLS(served *serving.Current, roles serving.Roles, log *slog.Logger, l *serving.Lifetime,
	metrics prometheus.Registerer) *TLS {
	return &TLS{served: served, roles: roles, log: log, fail: l.Fail, metrics: metrics, stopping: l.Stopping.Done(),
		ready: make(chan struct{})}
}

// secured has the settings that secure connections. It is empty without TLS.
type secured struct {
	config *tls.Config        // nil: no TLS
	files  *certificate.Files // nil: not by files
	acme   *certificate.ACME  // nil: not by ACME
}

func (s *secured) close() {
	if s.files != nil {
		s.files.Close()
	}
	if s.acme != nil {
		s.acme.Close()
	}
}

// securing wraps the connections of HTTP in TLS while there is a certificate.
type securing struct {
	net.Listener
	secure *TLS
}

func (l securing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case <-l.secure.ready: // until then it is unknown whether a connection may be served without TLS
	case <-l.secure.stopping:
	}
	switch now := l.secure.now.Load(); {
	case now == nil:
		_ = c.Close()
		return c, nil
	case now.config != nil:
		return tls.Server(c, now.config), nil
	default:
		return c, nil
	}
}

// Redirects is the part that serves the port which redirects to HTTPS.
func (s *TLS) Redirects() serving.Part {
	return serving.Part{
		Name: "redirects",
		Start: func(ctx context.Context, first *serving.Generation) (err error) {
			s.port, err = s.listen(ctx, first)
			s.Address = s.port.Address()
			return err
		},
		Reload: func(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
			if redirectOf(before) == redirectOf(next) {
				return part.Change{}, nil
			}
			opened, err := s.listen(ctx, next)
			if err != nil {
				return part.Change{}, err
			}
			former := s.port
			s.Address = opened.Address() // the certificates that are obtained next use it
			return part.Change{
				Apply: func() {
					s.port = opened
					former.Withdraw()
				},
				Cancel: func() { s.Address = former.Address(); _ = opened.Close() },
				Retire: func(context.Context) { _ = former.Close() },
			}, nil
		},
		Stop: func(context.Context) error { return s.port.Close() },
	}
}

// redirectOf is the address of a configuration that redirects; "" for none.
func redirectOf(g *serving.Generation) string {
	if !g.Config.Secure() {
		return ""
	}
	return g.Config.HTTP.Redirect
}

func (s *TLS) listen(ctx context.Context, g *serving.Generation) (*port.Port, error) {
	at := redirectOf(g)
	if at == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if s.port.Overlaps(at, err) {
		return nil, errs.Wrap(err, errs.Unavailable, "http.redirect: belfry redirects on %s now, which overlaps with "+
			"%s: reload with another port, or without http.redirect, first, or restart belfry", s.port.Address(), at)
	}
	if err != nil {
		return nil, errs.Wrap(err,
			errs.Unavailable, "can't listen on %s, which redirects to https: free the port, or choose another as "+
				"http.redirect (ports below 1024 need root, or CAP_NET_BIND_SERVICE)", at)
	}
	redirect := http.HandlerFunc(s.redirectToHTTPS)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now := s.now.Load(); now != nil && now.acme != nil {
			now.acme.Challenge(redirect).ServeHTTP(w, r)
			return
		}
		redirect.ServeHTTP(w, r)
	})
	return port.Serve(api.RedirectServer(handler, s.log), listener, func(err error) {
		s.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server that redirects has failed"))
	}), nil
}

// Certificates is the part that makes certificates available, before connections are served.
func (s *TLS) Certificates() serving.Part {
	return serving.Part{
		Name: "the certificates",
		Start: func(_ context.Context, first *serving.Generation) error {
			now, err := s.open(first)
			if err != nil {
				return err
			}
			s.now.Store(now)
			s.metrics.MustRegister(s.expiries())
			close(s.ready)
			return nil
		},
		Reload: s.reload,
		Stop: func(context.Context) error {
			if now := s.now.Load(); now != nil {
				now.close()
			}
			return nil
		},
	}
}

func (s *TLS) reload(_ context.Context, before, next *serving.Generation) (part.Change, error) {
	was, is := &before.Config.HTTP, &next.Config.HTTP
	if (was.TLS != nil) == (is.TLS != nil) && reflect.DeepEqual(was.ACME, is.ACME) &&
		redirectOf(before) == redirectOf(next) {
		return part.Change{}, nil // renew uses another certificate
	}
	opened, err := s.open(next)
	if err != nil {
		return part.Change{}, err
	}
	former := s.now.Load()
	return part.Change{
		Apply: func() { s.now.Store(opened) }, Cancel: opened.close,
		Retire: func(context.Context) { former.close() },
	}, nil
}

// open makes the certificates of a configuration available.
func (s *TLS) open(g *serving.Generation) (*secured, error) {
	now, h := &secured{}, &g.Config.HTTP
	switch {
	case !g.Config.Secure() || !s.roles.Has(plan.RoleFront): // without that role it serves probes only
	case h.TLS != nil:
		now.files = certificate.NewFiles(g.Plan.Certificate, plan.PublicName(g.Config), s.log)
		now.config = now.files.TLSConfig()
	default:
		acme, err := certificate.NewACME(certificate.ACMEOptions{
			Domains: h.ACME.Domains, Email: h.ACME.Email, Directory: h.ACME.Directory, CA: h.ACME.CA,
			ExtraCA: h.ACME.ExtraCA, Storage: h.ACME.Storage, Listen: g.Address, Redirect: s.Address, Log: s.log,
		})
		if err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "http.acme")
		}
		now.acme, now.config = acme, acme.TLSConfig()
	}
	return now, nil
}

// redirectToHTTPS redirects a client to the same host and path, if the host is served.
func (s *TLS) redirectToHTTPS(w http.ResponseWriter, r *http.Request) {
	g := s.served.Now()
	w.Header().Set("Connection", "close")
	if !g.Hosts().Accepts(r.Context(), r.Host) {
		http.Error(w, "this host is not served here", http.StatusMisdirectedRequest)
		return
	}
	path := r.URL.RequestURI()
	if !strings.HasPrefix(path, "/") { // otherwise it would become a part of the host
		http.Error(w, "expected a path", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, g.Config.RedirectTarget(httpkit.WithoutPort(r.Host), g.Address)+path, http.StatusPermanentRedirect) //nolint:gosec // the host is served here
}

// Renew uses the certificate of another plan, and returns the key if the certificate has changed.
func (s *TLS) Renew(p *plan.Plan) (changed []string) {
	now := s.now.Load()
	if now == nil || now.files == nil || p.Certificate == nil {
		return nil
	}
	if now.files.Use(p.Certificate, plan.PublicName(p.Config)) {
		changed = append(changed, "http.tls ("+p.Config.HTTP.TLS.Cert+")")
	}
	return changed
}

var expiryDesc = prometheus.NewDesc("belfry_certificate_expiry_timestamp_seconds",
	"Until when a certificate that the process serves is valid.", []string{"certificate"}, nil)

// expiries are the times until which certificates are valid.
func (s *TLS) expiries() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		if now := s.now.Load(); now != nil && now.files != nil {
			values.Gauge(expiryDesc, float64(now.files.Leaf().NotAfter.Unix()), "http.tls")
		}
		c := s.served.Now().Config
		if acme := c.HTTP.ACME; acme != nil && c.Secure() && s.roles.Has(plan.RoleFront) {
			for _, domain := range acme.Domains {
				if last := examine.Latest(examine.AcmeFiles(acme.Storage, domain)); last != nil {
					values.Gauge(expiryDesc, float64(last.NotAfter.Unix()), domain)
				}
			}
		}
	}, expiryDesc)
}
