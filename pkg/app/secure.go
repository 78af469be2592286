package app

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/api/kit"
	"belfry/pkg/app/certificate"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// secure is what serves HTTP with TLS. It is empty for a process without.
type secure struct {
	config *tls.Config        // nil: no TLS
	files  *certificate.Files // nil: not by files
	acme   *certificate.ACME  // nil: not by ACME

	redirect string // the address that redirects; "" for none
}

// secures reports whether this process serves TLS. Without the role front it serves probes only, to programs that
// know its address and no name.
func (a *App) secures() bool { return a.has(plan.RoleFront) && a.now().config.Secure() }

// startTLS makes the certificates available, and redirects, before connections are served.
func (a *App) startTLS(ctx context.Context) error {
	g := a.now()
	s, h := &a.secure, &g.config.HTTP
	var redirect net.Listener
	if h.Redirect != "" {
		var err error
		if redirect, err = (&net.ListenConfig{}).Listen(ctx, "tcp", h.Redirect); err != nil {
			return errs.Wrap(err, errs.Unavailable, "can't listen on %s, which redirects to https: free the port, or choose another as http.redirect (ports below 1024 need root, or CAP_NET_BIND_SERVICE)", h.Redirect)
		}
		s.redirect = redirect.Addr().String()
	}
	if h.TLS != nil {
		s.files = certificate.NewFiles(g.plan.Certificate, plan.PublicName(g.config), a.log)
		s.config = s.files.TLSConfig()
		a.onStop("the certificate", func(context.Context) error { s.files.Close(); return nil })
	} else {
		acme, err := certificate.NewACME(certificate.ACMEOptions{
			Domains: h.ACME.Domains, Email: h.ACME.Email, Directory: h.ACME.Directory, CA: h.ACME.CA, ExtraCA: h.ACME.ExtraCA, Storage: h.ACME.Storage,
			Listen: a.HTTPAddress(), Redirect: s.redirect, Log: a.log,
		})
		if err != nil {
			if redirect != nil {
				_ = redirect.Close()
			}
			return errs.Wrap(err, errs.KindOf(err), "http.acme")
		}
		s.acme, s.config = acme, acme.TLSConfig()
		a.onStop("the certificates", func(context.Context) error { acme.Close(); return nil })
	}
	if redirect != nil {
		a.serveRedirects(redirect)
	}
	return nil
}

// serveRedirects serves the port that redirects.
func (a *App) serveRedirects(listener net.Listener) {
	var handler http.Handler = http.HandlerFunc(a.redirectToHTTPS)
	if a.secure.acme != nil {
		handler = a.secure.acme.Challenge(handler)
	}
	a.serveBeside("redirects", api.RedirectServer(handler, a.log), listener, func(err error) {
		a.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server that redirects has failed"))
	})
}

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
	if s.files == nil || p.Certificate == nil {
		return nil
	}
	if s.files.Use(p.Certificate, plan.PublicName(p.Config)) {
		changed = append(changed, "http.tls ("+p.Config.HTTP.TLS.Cert+")")
	}
	return changed
}
