package app

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/api/kit"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// secure serves HTTP with TLS, where the configuration says so.
type secure struct {
	app     *App
	ready   chan struct{}           // closed once now is set
	now     atomic.Pointer[secured] // nil: before the start
	port    *beside                 // that redirects; nil for none
	address string                  // of that port
}

// secured is how connections are secured. It is empty without TLS.
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

// securing makes connections with TLS of those of HTTP, as long as there is a certificate.
type securing struct {
	net.Listener
	secure *secure
}

func (l securing) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case <-l.secure.ready: // before that it is not known whether a connection may be served without TLS
	case <-l.secure.app.stopping.Done():
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

// redirects is the part that serves the port which redirects to HTTPS.
func (s *secure) redirects() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "redirects",
		Start: func(ctx context.Context, first *serving) (err error) {
			s.port, err = s.listen(ctx, first)
			s.address = s.port.at()
			return err
		},
		Reload: func(ctx context.Context, before, next *serving) (part.Change, error) {
			if redirectOf(before) == redirectOf(next) {
				return part.Change{}, nil
			}
			opened, err := s.listen(ctx, next)
			if err != nil {
				return part.Change{}, err
			}
			former := s.port
			s.address = opened.at() // certificates that are obtained next name it
			return part.Change{
				Apply:  func() { s.port = opened },
				Cancel: func() { s.address = former.at(); _ = opened.close() },
				Retire: func(context.Context) { _ = former.close() },
			}, nil
		},
		Stop: func(context.Context) error { return s.port.close() },
	}
}

// redirectOf is the address of a configuration that redirects; "" for none.
func redirectOf(g *serving) string {
	if !g.config.Secure() {
		return ""
	}
	return g.config.HTTP.Redirect
}

func (s *secure) listen(ctx context.Context, g *serving) (*beside, error) {
	at := redirectOf(g)
	if at == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't listen on %s, which redirects to https: free the port, or choose another as http.redirect (ports below 1024 need root, or CAP_NET_BIND_SERVICE)", at)
	}
	redirect := http.HandlerFunc(s.app.redirectToHTTPS)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if now := s.now.Load(); now != nil && now.acme != nil {
			now.acme.Challenge(redirect).ServeHTTP(w, r)
			return
		}
		redirect.ServeHTTP(w, r)
	})
	return serveBeside(api.RedirectServer(handler, s.app.log), listener, func(err error) {
		s.app.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server that redirects has failed"))
	}), nil
}

// certificates is the part that makes certificates available, before connections are served.
func (s *secure) certificates() part.Part[*serving] {
	return part.Part[*serving]{
		Name: "the certificates",
		Start: func(_ context.Context, first *serving) error {
			now, err := s.open(first)
			if err != nil {
				return err
			}
			s.now.Store(now)
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

func (s *secure) reload(_ context.Context, before, next *serving) (part.Change, error) {
	was, is := &before.config.HTTP, &next.config.HTTP
	if (was.TLS != nil) == (is.TLS != nil) && reflect.DeepEqual(was.ACME, is.ACME) && redirectOf(before) == redirectOf(next) {
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
func (s *secure) open(g *serving) (*secured, error) {
	now, h := &secured{}, &g.config.HTTP
	switch {
	case !g.config.Secure() || !g.has(plan.RoleFront): // without that role it serves probes only
	case h.TLS != nil:
		now.files = certificate.NewFiles(g.plan.Certificate, plan.PublicName(g.config), s.app.log)
		now.config = now.files.TLSConfig()
	default:
		acme, err := certificate.NewACME(certificate.ACMEOptions{
			Domains: h.ACME.Domains, Email: h.ACME.Email, Directory: h.ACME.Directory, CA: h.ACME.CA, ExtraCA: h.ACME.ExtraCA, Storage: h.ACME.Storage,
			Listen: s.app.HTTPAddress(), Redirect: s.address, Log: s.app.log,
		})
		if err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "http.acme")
		}
		now.acme, now.config = acme, acme.TLSConfig()
	}
	return now, nil
}

// secures reports whether this process serves TLS. Without the role front it serves probes only, to programs that
// know its address and no name.
func (a *App) secures() bool { return a.has(plan.RoleFront) && a.now().config.Secure() }

// redirectToHTTPS sends a client to the same host and path, if it is a host that is served.
func (a *App) redirectToHTTPS(w http.ResponseWriter, r *http.Request) {
	g := a.now()
	w.Header().Set("Connection", "close")
	if !g.hosts().Accepts(r.Context(), r.Host) {
		http.Error(w, "this host is not served here", http.StatusMisdirectedRequest)
		return
	}
	path := r.URL.RequestURI()
	if !strings.HasPrefix(path, "/") { // it would become a part of the host
		http.Error(w, "expected a path", http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, g.config.RedirectTarget(kit.WithoutPort(r.Host), a.HTTPAddress())+path, http.StatusPermanentRedirect) //nolint:gosec // the host is served here
}

// announceTLS has browsers use https alone, for the name that they used. An address, and the machine itself, are not
// such a name: on localhost it would hold for the programs of all other ports as well.
func (g *serving) announceTLS(w http.ResponseWriter, r *http.Request) {
	hsts := g.config.HTTP.HSTS
	if r.TLS == nil || hsts <= 0 {
		return
	}
	host := kit.WithoutPort(r.Host)
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" {
		return
	}
	w.Header().Set("Strict-Transport-Security", "max-age="+strconv.Itoa(int(hsts/time.Second)))
}

// renew uses the certificate of another plan, and returns the key if it is another one.
func (s *secure) renew(p *plan.Plan) (changed []string) {
	now := s.now.Load()
	if now == nil || now.files == nil || p.Certificate == nil {
		return nil
	}
	if now.files.Use(p.Certificate, plan.PublicName(p.Config)) {
		changed = append(changed, "http.tls ("+p.Config.HTTP.TLS.Cert+")")
	}
	return changed
}
